package pgserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Standby creates a streaming replica of the server and starts it. The replica
// is read-only until somebody calls Promote.
func (s *Server) Standby(ctx context.Context) (*Server, error) {
	dir, err := os.MkdirTemp(filepath.Dir(s.Dir), "pg")
	if err != nil {
		return nil, err
	}

	copied := &Server{Dir: dir, bin: s.bin, settings: slices.Clone(s.settings)}
	if os.Geteuid() == 0 {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			return nil, err
		}
	}

	cmd := copied.command("pg_basebackup", "--pgdata="+copied.data(), "--host="+s.Dir, "--username=postgres",
		"--write-recovery-conf", "--checkpoint=fast", "--no-sync")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("pg_basebackup: %w: %s", err, text), os.RemoveAll(dir))
	}
	if err := copied.Run(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}

	return copied, nil
}

// Promote makes a standby a primary server, and returns when it is one.
func (s *Server) Promote() error {
	cmd := s.command("pg_ctl", "promote", "--wait", "--pgdata="+s.data())
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pg_ctl promote: %w: %s", err, text)
	}
	return nil
}
