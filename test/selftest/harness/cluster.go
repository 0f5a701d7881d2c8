package harness

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"example.com/runner/test/pgserver"
)

// cluster is a primary server with a synchronous standby. A server that was
// just promoted has no standby for some seconds. Meanwhile nobody else has its
// commits, so no other server may replace it.
type cluster struct {
	mu      sync.Mutex
	primary *pgserver.Server
	standby *pgserver.Server // standby server; nil until commits on the primary server wait for it

	ctx      context.Context // ends when the run ends
	stop     context.CancelFunc
	building sync.WaitGroup // counts the goroutine that creates a standby
}

// settings are those of both servers: a standby reconnects soon after a kill of
// the primary, which keeps the WAL that the standby still needs.
var settings = []string{"fsync=on", "wal_retrieve_retry_interval=100ms", "wal_keep_size=256MB"}

func startCluster(ctx context.Context) (*cluster, error) {
	primary, err := pgserver.Start(ctx, settings...)
	if err != nil {
		return nil, err
	}

	c := &cluster{primary: primary}
	c.ctx, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	c.build()
	return c, nil
}

// build creates a standby in the background. The primary may be killed
// meanwhile, so build tries again after an error.
func (c *cluster) build() {
	primary := c.server()
	c.building.Go(func() {
		var standby *pgserver.Server
		for ; c.ctx.Err() == nil; c.pause() {
			var err error
			if standby == nil {
				standby, err = primary.Standby(c.ctx)
			}
			if err == nil {
				_, err = query(primary, "ALTER SYSTEM SET synchronous_standby_names = 'ANY 1 (*)'", "SELECT pg_reload_conf()")
			}
			if err == nil && synchronous(primary) {
				c.mu.Lock()
				c.standby = standby
				c.mu.Unlock()
				return
			}
		}

		if standby != nil {
			_ = standby.Close()
		}
	})
}

func (c *cluster) pause() {
	select {
	case <-c.ctx.Done():
	case <-time.After(100 * time.Millisecond):
	}
}

// query runs statements on a server and returns their output.
func query(s *pgserver.Server, statements ...string) (string, error) {
	args := []string{"--no-psqlrc", "--tuples-only", "--no-align"}
	for _, text := range statements {
		args = append(args, "--command="+text)
	}
	return s.Client("", "psql", args...)
}

// synchronous reports whether commits on a primary server wait for its standby.
func synchronous(primary *pgserver.Server) bool {
	text, err := query(primary, "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'")
	return err == nil && strings.TrimSpace(text) == "1"
}

func (c *cluster) server() *pgserver.Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.primary
}

func (c *cluster) socket() string { return filepath.Join(c.server().Dir, ".s.PGSQL.5432") }

// hasStandby reports whether the standby has every confirmed commit: while it
// is connected as a synchronous standby, each commit waits for it, because of
// synchronous_standby_names. build has set that long before, so every session
// has read it.
func (c *cluster) hasStandby() bool {
	c.mu.Lock()
	standby := c.standby
	c.mu.Unlock()
	return standby != nil && synchronous(c.server())
}

// promote makes the standby the primary server. The old primary must have
// ended. The proxies connect to the standby only after its promotion, as
// clients with target_session_attrs=read-write do.
func (c *cluster) promote() error {
	c.mu.Lock()
	old, next := c.primary, c.standby
	c.standby = nil
	c.mu.Unlock()
	if err := next.Promote(); err != nil {
		return errors.Join(err, next.Close())
	}

	c.mu.Lock()
	c.primary = next
	c.mu.Unlock()
	c.build()
	return old.Close()
}

func (c *cluster) close() {
	c.stop()
	c.building.Wait()
	_ = c.primary.Close()
	if c.standby != nil {
		_ = c.standby.Close()
	}
}
