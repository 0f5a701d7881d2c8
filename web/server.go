package web

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// ServerOptions are the options of Listen. The zero ServerOptions listens on
// 127.0.0.1:8484 and requires a token.
type ServerOptions struct {
	Options // the server ignores the field Authorize, because the token replaces Authorize
	// Listen is HOST:PORT or unix:PATH. Defaults to 127.0.0.1:8484.
	Listen string
	// PublicURL is the URL of the server for browsers that connect through a
	// proxy. The server accepts requests whose Host header names the host of
	// this URL. Defaults to none.
	PublicURL string
	// TokenFile is the file that contains the token. Listen creates it if it
	// does not exist. Defaults to "token" in the directory beside the database.
	TokenFile string
	// NoToken gives access to every user who can connect to the server. It
	// requires a unix socket. Defaults to false.
	NoToken bool
	// Insecure allows an address that other machines can connect to, although
	// the token is then sent in plain text. Defaults to false.
	Insecure bool
}

// publicURL parses PublicURL. It returns nil if there is none.
func (o ServerOptions) publicURL() (*url.URL, error) {
	if o.PublicURL == "" {
		return nil, nil
	}

	u, err := url.Parse(o.PublicURL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, &jobs.Error{Kind: jobs.ErrInvalid, Code: errcode.PublicURL, Subject: o.PublicURL,
			What: "invalid public URL " + o.PublicURL, Hint: "https://runner.example.com"}
	}
	return u, nil
}

// FirstPage returns the URL of the first page for browsers that connect through
// a proxy, without a slash at its end. It is empty without a PublicURL.
func (o ServerOptions) FirstPage() (string, error) {
	u, err := o.publicURL()
	if err != nil || u == nil {
		return "", err
	}
	if base := strings.Trim(o.BasePath, "/"); base != "" {
		return u.Scheme + "://" + u.Host + "/" + base, nil
	}
	return strings.TrimRight(u.String(), "/"), nil
}

// Server serves the pages to browsers.
type Server struct {
	handler *handler
	listen  net.Listener
	socket  string // path of the unix socket; empty if there is none
	address string
	file    string // path of the token file; empty if no token is required
}

// The limits of the server for slow or large requests.
const (
	maxConnections  = 2 * maxStreams // so the streams of open pages can use half of them
	maxHeader       = 16 << 10
	headerTimeout   = 5 * time.Second
	bodyTimeout     = 30 * time.Second
	idleTimeout     = time.Minute
	shutdownTimeout = 3 * time.Second
)

// Listen opens the address, and creates the token if there is none. An error is
// of kind jobs.ErrInvalid or jobs.ErrPermission.
func Listen(r *runner.Runner, o ServerOptions) (*Server, error) {
	o.Listen = cmp.Or(o.Listen, "127.0.0.1:8484")
	socket, isUnix := strings.CutPrefix(o.Listen, "unix:")
	if !isUnix {
		socket = ""
		if err := o.checkAddress(); err != nil {
			return nil, err
		}
	}

	public, err := o.publicURL()
	if err != nil {
		return nil, err
	}

	s, auth := &Server{socket: socket}, &authenticator{public: public}
	if !o.NoToken {
		s.file = cmp.Or(o.TokenFile, db.Of(r).TokenFile())
		if auth.token, err = db.Of(r).Token(o.TokenFile); err != nil {
			return nil, err
		}
	}

	if isUnix {
		s.listen, err = listenUnix(socket)
	} else {
		s.listen, err = net.Listen("tcp", o.Listen)
	}
	if err != nil {
		if p, ok := errors.AsType[*jobs.Error](err); ok {
			return nil, p
		}
		return nil, &jobs.Error{Kind: jobs.ErrPermission, Code: errcode.ListenFailed, Subject: o.Listen,
			What: "cannot listen on " + o.Listen, Why: []string{reason(err)}, Hint: "127.0.0.1:0, for any free port", Err: err}
	}
	if address, ok := s.listen.Addr().(*net.TCPAddr); ok {
		auth.port = strconv.Itoa(address.Port)
		auth.local = address.IP.IsLoopback()
	}

	o.Authorize, o.auth = nil, auth
	s.handler = newHandler(r, o.Options)
	switch {
	case public != nil:
		first, _ := o.FirstPage() // publicURL has checked the URL
		s.address = first + "/"
	case isUnix:
		s.address = o.Listen
	default:
		s.address = "http://" + s.listen.Addr().String() + s.handler.base + "/"
	}

	return s, nil
}

// checkAddress returns an error for an address of the network that would give
// other users access.
func (o ServerOptions) checkAddress() error {
	if o.NoToken {
		return &jobs.Error{Kind: jobs.ErrInvalid, Code: errcode.TokenMissing, Subject: o.Listen,
			What: "without a token every user who can connect to " + o.Listen + " has full access",
			Hint: "unix:/run/runner/ui.sock, whose file mode limits access"}
	}
	if o.Insecure {
		return nil
	}

	host, _, err := net.SplitHostPort(o.Listen)
	if err != nil {
		return &jobs.Error{Kind: jobs.ErrInvalid, Code: errcode.ListenAddress, Subject: o.Listen,
			What: "invalid address " + o.Listen, Why: []string{reason(err)}, Hint: "127.0.0.1:8484, or unix:PATH"}
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}

	return &jobs.Error{Kind: jobs.ErrInvalid, Code: errcode.PlainText, Subject: o.Listen,
		What: "other machines can reach " + o.Listen + ", and the token would travel there in the clear",
		Hint: "a unix socket behind a proxy with TLS, or Options.Insecure"}
}

// listenUnix creates a socket that only its owner can use. It replaces a socket
// on which no process listens.
func listenUnix(path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&fs.ModeSocket == 0 {
			return nil, &jobs.Error{Kind: jobs.ErrPermission, What: path + " exists and is not a socket"}
		}
		if conn, err := net.Dial("unix", path); err == nil {
			_ = conn.Close()
			return nil, &jobs.Error{Kind: jobs.ErrPermission, What: "another process serves " + path}
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}

	// The socket is created in a private directory, so no process can connect
	// to it before its mode is set.
	dir, err := os.MkdirTemp(filepath.Dir(path), ".runner-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(dir) }()

	made := dir + "/s"
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: made, Net: "unix"})
	if err != nil {
		return nil, err
	}

	l.SetUnlinkOnClose(false)
	err = os.Chmod(made, 0o600)
	if err == nil {
		err = os.Rename(made, path)
	}
	if err != nil {
		_ = l.Close()
		return nil, err
	}

	return l, nil
}

// reason returns the text of the innermost error in a network error.
func reason(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		err = op.Err
	}
	if sys, ok := errors.AsType[*os.SyscallError](err); ok {
		return sys.Err.Error()
	}
	return err.Error()
}

// Address returns the URL to open in a browser. The page asks for the token.
func (s *Server) Address() string { return s.address }

// URL returns Address with the token, if there is one. The token is in the
// fragment after #, because browsers do not send the fragment to a server.
// Anyone who reads this URL in a log can sign in.
func (s *Server) URL() string {
	if s.file == "" {
		return s.address
	}
	return s.address + "#t=" + s.handler.o.auth.token
}

// TokenFile returns the path of the token file, or "" if no token is required.
func (s *Server) TokenFile() string { return s.file }

// Serve handles requests until ctx ends. It then waits up to three seconds for
// requests in progress.
func (s *Server) Serve(ctx context.Context) error {
	stopped, stop := context.WithCancel(context.Background()) // stop ends the streams
	defer stop()

	server := &http.Server{
		Handler:           s.handler,
		ConnState:         limitConnections(),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       bodyTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ErrorLog:          slog.NewLogLogger(s.handler.logger.Handler(), slog.LevelDebug),
		BaseContext:       func(net.Listener) context.Context { return stopped },
	}
	var closing sync.WaitGroup
	defer closing.Wait()

	served := make(chan struct{})
	defer close(served)

	closing.Go(func() {
		select {
		case <-ctx.Done():
		case <-served:
			return
		}

		stop()
		shutdown, cancel := context.WithTimeout(context.Background(), shutdownTimeout)
		defer cancel()

		if server.Shutdown(shutdown) != nil {
			_ = server.Close() // some requests have not finished in time
		}
	})
	err := server.Serve(s.listen)
	if s.socket != "" {
		os.Remove(s.socket)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}

	return err
}

// limitConnections returns a hook of a server that closes each new connection
// while maxConnections are open. (netutil.LimitListener would hide CloseWrite
// of the connection: then a client may lose the answer to a request that is too
// large.)
func limitConnections() func(net.Conn, http.ConnState) {
	var open atomic.Int64
	return func(conn net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			if open.Add(1) > maxConnections {
				_ = conn.Close() // the goroutine of the connection gets an error from its read, and ends
			}
		case http.StateClosed:
			open.Add(-1)
		}
	}
}
