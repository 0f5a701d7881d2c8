package pgserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Standby makes a copy of the server that follows it, and starts it. It can be read; Promote makes it one that can be written.
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
	cmd := copied.command("pg_basebackup", "--pgdata="+copied.data(), "--host="+s.Dir, "--username=postgres", "--write-recovery-conf", "--checkpoint=fast", "--no-sync")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("pg_basebackup: %w: %s", err, text)
	}
	return copied, copied.Run(ctx)
}

// Promote makes a standby a server of its own, and returns when it is.
func (s *Server) Promote() error {
	cmd := s.command("pg_ctl", "promote", "--wait", "--pgdata="+s.data())
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("pg_ctl promote: %w: %s", err, text)
	}
	return nil
}
