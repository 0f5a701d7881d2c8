package pgserver

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrNone is the error that Start returns if PostgreSQL isn't installed.
var ErrNone = errors.New("PostgreSQL is not installed: initdb not found in PATH or /usr/lib/postgresql/*/bin")

// Server is a PostgreSQL server. Its user is postgres, without a password.
type Server struct {
	Dir string // directory with the data and the socket

	bin      string
	settings []string
	process  *exec.Cmd
	ended    chan struct{}
}

const (
	startFor = time.Minute
	stopFor  = 30 * time.Second
)

// Start creates a server and starts it. The settings are lines for the
// configuration of the server, such as "fsync=on". Without settings the server
// may lose data in a power failure.
func Start(ctx context.Context, settings ...string) (*Server, error) {
	bin, err := find()
	if err != nil {
		return nil, err
	}

	dir, err := os.MkdirTemp("/tmp", "pg") // the name must be short: the path of a socket has at most 107 bytes
	if err != nil {
		return nil, err
	}

	s := &Server{Dir: dir, bin: bin, settings: settings}
	if err := s.make(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	if err := s.Run(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}

	return s, nil
}

// find returns the directory with the programs of the newest installed
// PostgreSQL.
func find() (string, error) {
	if path, err := exec.LookPath("initdb"); err == nil {
		// initdb may be a symbolic link. The other programs are in the
		// directory of the real file.
		if path, err = filepath.EvalSymlinks(path); err == nil {
			return filepath.Dir(path), nil
		}
	}

	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if err != nil || len(found) == 0 {
		return "", ErrNone
	}

	slices.SortFunc(found, func(a, b string) int { return version(a) - version(b) })
	return filepath.Dir(found[len(found)-1]), nil
}

// version returns the version of PostgreSQL that the path of a program
// contains.
func version(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))) // 0 if the path contains no version
	return n
}

// command prepares a call of a program that belongs to PostgreSQL.
func (s *Server) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.bin, name), args...)
	cmd.Dir = s.Dir
	cmd.Env = append(os.Environ(), "LC_ALL=C", "PGDATA="+s.data())
	asNobody(cmd)
	return cmd
}

const nobody = 65534

func (s *Server) data() string { return filepath.Join(s.Dir, "data") }

// make creates the data directory of the server.
func (s *Server) make(ctx context.Context) error {
	if os.Geteuid() == 0 {
		if err := os.Chown(s.Dir, nobody, nobody); err != nil {
			return err
		}
	}

	cmd := s.command("initdb", "--username=postgres", "--auth=trust", "--encoding=UTF8", "--no-sync", "--no-instructions")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w: %s", err, text)
	}

	return ctx.Err()
}

// Run starts the server and returns when it accepts connections. It can start
// the server again after Kill or Crash. After Crash it first waits until the
// remaining processes have ended.
func (s *Server) Run(ctx context.Context) error {
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		err := s.run(ctx)
		if !errors.Is(err, errEnded) || time.Since(began) > stopFor {
			return err
		}
	}
}

var errEnded = errors.New("the server has ended")

// run tries once to start the server. It returns errEnded if the server exits
// before it accepts connections.
func (s *Server) run(ctx context.Context) error {
	args := []string{"-k", s.Dir, "-c", "listen_addresses=", "-c", "max_connections=200", "-c", "shared_buffers=64MB"}
	settings := s.settings
	if len(settings) == 0 {
		settings = []string{"fsync=off", "full_page_writes=off"}
	}

	for _, setting := range settings {
		args = append(args, "-c", setting)
	}

	log, err := os.OpenFile(filepath.Join(s.Dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()

	s.process = s.command("postgres", args...)
	s.process.Stdout, s.process.Stderr = log, log
	if err := s.process.Start(); err != nil {
		return err
	}

	process, ended := s.process, make(chan struct{})
	s.ended = ended
	// The guard is a process that cleans up if this process dies. It reads from
	// a pipe, which the kernel closes when this process dies. The guard then
	// ends the server and removes its directory. It ignores the signals that a
	// terminal sends to all its processes.
	guard := s.command("sh", "-c", `trap "" HUP INT QUIT TERM; cd /; read end; while kill -QUIT "$0"; do sleep 0.1; done; rm -rf "$1"`,
		strconv.Itoa(process.Process.Pid), s.Dir)
	guard.Path = "/bin/sh"
	pipe, err := guard.StdinPipe()
	if err == nil {
		err = guard.Start()
	}
	if err != nil {
		return errors.Join(err, process.Process.Kill(), process.Wait())
	}

	go func() {
		_ = process.Wait()
		// The server has ended, and another process may get its pid. Kill the
		// guard process: it would send signals to that pid.
		_ = guard.Process.Kill()
		_ = guard.Wait()
		pipe.Close()
		close(ended)
	}()
	for began := time.Now(); time.Since(began) < startFor; time.Sleep(20 * time.Millisecond) {
		select {
		case <-ended:
			return fmt.Errorf("%w: %s", errEnded, s.Log())
		case <-ctx.Done():
			return errors.Join(ctx.Err(), s.Kill())
		default:
		}

		text, err := os.ReadFile(filepath.Join(s.data(), "postmaster.pid"))
		if err == nil && strings.HasSuffix(strings.TrimSpace(string(text)), "ready") &&
			strings.HasPrefix(string(text), strconv.Itoa(process.Process.Pid)+"\n") {
			return nil
		}
	}

	return errors.Join(fmt.Errorf("the server does not accept connections: %s", s.Log()), s.Kill())
}

// Log returns the last part of the server's log.
func (s *Server) Log() string {
	text, _ := os.ReadFile(filepath.Join(s.Dir, "log")) // the file may not exist yet
	return string(text[max(len(text)-2000, 0):])
}

// Address returns the address of a database on the server. Each option is a
// parameter of the address, such as "pool_max_conns=4".
func (s *Server) Address(database string, options ...string) string {
	query := url.Values{"host": {s.Dir}}
	for _, option := range options {
		key, value, _ := strings.Cut(option, "=")
		query.Set(key, value)
	}
	return "postgres://postgres@/" + database + "?" + query.Encode()
}

// Kill ends the server immediately with SIGQUIT. The server loses no committed
// data, because the operating system already has this data.
func (s *Server) Kill() error { return s.end(syscall.SIGQUIT) }

// Crash kills the main process of the server with SIGKILL. Its other processes
// then end on their own.
func (s *Server) Crash() error { return s.end(syscall.SIGKILL) }

// Close ends the server and removes its directory.
func (s *Server) Close() error { return errors.Join(s.end(syscall.SIGINT), os.RemoveAll(s.Dir)) }

func (s *Server) end(signal syscall.Signal) error {
	select {
	case <-s.ended:
		return nil
	default:
	}

	if err := s.process.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}

	select {
	case <-s.ended:
		return nil
	case <-time.After(stopFor):
		return errors.New("the server does not end")
	}
}

// Client runs a client program of PostgreSQL, such as pg_dump, on the database
// postgres of the server. It returns the output of the program.
func (s *Server) Client(input, name string, args ...string) (output string, err error) {
	cmd := s.command(name, args...)
	cmd.Env = append(cmd.Env, "PGHOST="+s.Dir, "PGUSER=postgres", "PGDATABASE=postgres")
	cmd.Stdin = strings.NewReader(input)
	var failed strings.Builder
	cmd.Stderr = &failed
	text, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%s: %w: %s", name, err, failed.String())
	}
	return string(text), err
}
