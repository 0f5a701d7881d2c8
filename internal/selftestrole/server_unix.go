//go:build unix

package selftestrole

import (
	"context"

	"example.com/runner/internal/selftest"
)

// OnOwnServer starts a PostgreSQL server with durable commits and a synchronous standby for the database of a selftest.
func OnOwnServer(ctx context.Context, o *selftest.Options) (stop func(), err error) {
	c, err := startCluster(ctx)
	if err != nil {
		return nil, err
	}
	o.Server = &selftest.Server{Socket: c.socket, HasStandby: c.hasStandby, Promote: c.promote,
		Kill:  func() error { return c.server().Kill() },
		Crash: func() error { return c.server().Crash() },
		Run:   func(ctx context.Context) error { return c.server().Run(ctx) }}
	return c.close, nil
}
