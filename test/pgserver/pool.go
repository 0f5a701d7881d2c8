package pgserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// ErrNoPooler is the error that Pool returns if PgBouncer isn't installed.
var ErrNoPooler = errors.New("pgbouncer not found in PATH")

// poolPort is the port of PgBouncer. It listens only on a Unix socket, but
// PostgreSQL clients expect a port in the name of the socket file.
const poolPort = "6432"

// Pool starts PgBouncer in front of the server. It returns the address of a
// database behind PgBouncer. The mode is session, transaction or statement.
// PgBouncer ends when the caller calls stop or this process ends. A server has
// at most one pool at a time.
func (s *Server) Pool(ctx context.Context, mode, database string) (address string, stop func(), err error) {
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		return "", nil, ErrNoPooler
	}

	path := filepath.Join(s.Dir, "pgbouncer.ini")
	text := fmt.Sprintf("[databases]\n* = host=%s user=postgres\n"+
		"[pgbouncer]\nlisten_addr =\nunix_socket_dir = %s\nlisten_port = %s\nauth_type = any\npool_mode = %s\n",
		s.Dir, s.Dir, poolPort, mode)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return "", nil, err
	}

	cmd := s.command("sh", "-c", `"$0" -q "$1" & read end; kill $!; wait`, program, path)
	cmd.Path = "/bin/sh"
	pipe, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", nil, err
	}

	stop = func() {
		_, _ = io.WriteString(pipe, "end\n")
		_ = cmd.Wait()
	}
	for began := time.Now(); time.Since(began) < startFor && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		if conn, err := net.Dial("unix", filepath.Join(s.Dir, ".s.PGSQL."+poolPort)); err == nil {
			_ = conn.Close()
			return s.Address(database, "port="+poolPort), stop, nil
		}
	}

	stop()
	return "", nil, errors.New("pgbouncer does not answer")
}
