package web

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// ServerOptions of Listen. The zero ServerOptions listens on 127.0.0.1:8484 and asks for a token.
type ServerOptions struct {
	Options // Authorize is not asked: the token is
	// Listen is HOST:PORT or unix:PATH. Defaults to 127.0.0.1:8484.
	Listen string
	// PublicURL is how browsers reach the server through a proxy; its host is then a name of this server. Defaults to none.
	PublicURL string
	// TokenFile holds the token, and is made with one if there is none. Defaults to "token" in the directory beside the database.
	TokenFile string
	// NoToken lets everybody in who can reach the server. With a unix socket only. Defaults to false.
	NoToken bool
	// Insecure allows an address that other machines reach, to which the token travels in the clear. Defaults to false.
	Insecure bool
}

// Server serves the pages to browsers.
type Server struct {
	handler http.Handler
	listen  net.Listener
	socket  string // path of the unix socket; empty: there is none
	address string
	token   string // empty: there is none
	file    string // that holds the token
	log     *slog.Logger
}

// Limits against those who send slowly, or much.
const (
	maxHeader       = 16 << 10
	headerTimeout   = 5 * time.Second
	bodyTimeout     = 30 * time.Second
	idleTimeout     = time.Minute
	shutdownTimeout = 3 * time.Second
)

// Listen opens the address and makes the token, if there is none. Errors are of kind jobs.ErrInvalid or ErrPermission.
func Listen(r *runner.Runner, o ServerOptions) (*Server, error) {
	if o.Listen == "" {
		o.Listen = "127.0.0.1:8484"
	}
	g := &authenticator{}
	if o.PublicURL != "" {
		u, err := url.Parse(o.PublicURL)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, &jobs.Error{Kind: jobs.ErrInvalid, Code: errcode.PublicURL, Subject: o.PublicURL,
				What: "invalid public URL " + o.PublicURL, Hint: "https://runner.example.com"}
		}
		g.public = u
	}
	socket, unix := strings.CutPrefix(o.Listen, "unix:")
	if o.NoToken && !unix {
		return nil, &jobs.Error{Kind: jobs.ErrInvalid, Code: errcode.TokenMissing, Subject: o.Listen, What: "without a token everybody on " + o.Listen + " could see and do everything",
			Hint: "unix:/run/runner/ui.sock, whose mode says who may"}
	}
	if err := checkAddress(o.Listen, unix, o.Insecure); err != nil {
		return nil, err
	}
	if !o.NoToken {
		var err error
		if g.token, err = admin.Token(r, o.TokenFile); err != nil {
			return nil, err
		}
	}
	s := &Server{socket: socket, log: o.Log, token: g.token}
	if g.token != "" {
		s.file = cmp.Or(o.TokenFile, admin.TokenFile(r))
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	var err error
	if unix {
		s.listen, err = listenUnix(socket)
	} else {
		s.socket = ""
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
		_, g.port, _ = net.SplitHostPort(address.String())
		g.local = address.IP.IsLoopback()
	}
	o.Authorize = nil
	o.auth = g
	s.handler = Handler(r, o.Options)
	s.address = publicAddress(g, cmp.Or(s.socket, s.listen.Addr().String()), o.BasePath)
	return s, nil
}

// checkAddress refuses an address that others than this machine's users reach.
func checkAddress(address string, unix, insecure bool) error {
	if unix || insecure {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return &jobs.Error{Kind: jobs.ErrInvalid, Code: errcode.ListenAddress, Subject: address,
			What: "invalid address " + address, Why: []string{reason(err)}, Hint: "127.0.0.1:8484, or unix:PATH"}
	}
	if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
		return nil
	}
	return &jobs.Error{Kind: jobs.ErrInvalid, Code: errcode.PlainText, Subject: address,
		What: "other machines can reach " + address + ", and the token would travel there in the clear",
		Hint: "a unix socket behind a proxy with TLS, or Options.Insecure"}
}

// listenUnix makes a socket for its owner alone. A socket that nobody answers on is in the way, and removed.
func listenUnix(path string) (net.Listener, error) {
	if info, err := os.Lstat(path); err == nil {
		if info.Mode()&fs.ModeSocket == 0 {
			return nil, &jobs.Error{Kind: jobs.ErrPermission, What: path + " is there and no socket"}
		}
		if conn, err := net.Dial("unix", path); err == nil {
			_ = conn.Close()
			return nil, &jobs.Error{Kind: jobs.ErrPermission, What: "another process serves " + path}
		}
		if err := os.Remove(path); err != nil {
			return nil, err
		}
	}
	// In a directory of its own the socket has its mode before anybody can reach it.
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

// reason is the innermost text of a network error.
func reason(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok && op.Err != nil {
		err = op.Err
	}
	if sys, ok := errors.AsType[*os.SyscallError](err); ok {
		return sys.Err.Error()
	}
	return err.Error()
}

// publicAddress is the address to open in a browser, without the token.
func publicAddress(g *authenticator, address, base string) string {
	base = strings.TrimRight(path.Clean("/"+base), "/") + "/"
	u := "unix:" + address
	switch {
	case g.public != nil:
		u = strings.TrimRight(g.public.String(), "/")
		if base != "/" {
			u = g.public.Scheme + "://" + g.public.Host
		}
		u += base
	case g.port != "":
		u = "http://" + address + base
	}
	return u
}

// Address returns the address to open in a browser. The page asks for the token there.
func (s *Server) Address() string { return s.address }

// URL returns Address with the token, if there is one. The token is behind #, which browsers send to nobody. Whoever reads it in a log may
// sign in.
func (s *Server) URL() string {
	if s.token == "" {
		return s.address
	}
	return s.address + "#t=" + s.token
}

// TokenFile returns the path of the file that holds the token; empty: there is no token.
func (s *Server) TokenFile() string { return s.file }

// Serve answers requests until ctx ends, and then for a moment those that are under way.
func (s *Server) Serve(ctx context.Context) error {
	stopped, stop := context.WithCancel(context.Background()) // ends the streams
	defer stop()
	var open connections
	server := &http.Server{ConnState: open.changed, Handler: s.handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: bodyTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), BaseContext: func(net.Listener) context.Context { return stopped }}
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
			_ = server.Close() // they had their time
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

// assetVersion changes with the files that are embedded.
var assetVersion = sync.OnceValue(func() string {
	sum := sha256.New()
	_ = fs.WalkDir(static, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			text, _ := fs.ReadFile(static, name) // embedded: it can be read
			sum.Write(text)
		}
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)[:5])
})
