//go:build unix

package selftestrole

import (
	"context"
	"path/filepath"

	"example.com/runner/internal/pgserver"
	"example.com/runner/internal/selftest"
)

// OnOwnServer starts a PostgreSQL server with durable commits for the database of a selftest.
func OnOwnServer(ctx context.Context, o *selftest.Options) (stop func(), err error) {
	s, err := pgserver.Start(ctx, "fsync=on")
	if err != nil {
		return nil, err
	}
	o.Server = &selftest.Server{Address: s.Address("postgres"), Socket: filepath.Join(s.Dir, ".s.PGSQL.5432"), Kill: s.Kill, Crash: s.Crash,
		Run: s.Run}
	return func() { _ = s.Close() }, nil
}
