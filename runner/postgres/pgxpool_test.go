package postgres_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/postgres"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/pgkit"
)

// TestRunnerConnectsAsPool opens a database with a pool whose user is set just
// before each connect. A transaction of the pool adds a task, which a worker
// notices by LISTEN: without it, it would look only every ten minutes.
func TestRunnerConnectsAsPool(t *testing.T) {
	schema := pgkit.NewSchema()
	config, err := pgxpool.ParseConfig(pgkit.Shared(t).Address("postgres", "search_path=public"))
	testkit.NoError(t, err)
	right := config.ConnConfig.User
	config.ConnConfig.User = "nobody"
	var before, after, low atomic.Int64
	config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error { c.User = right; before.Add(1); return nil }
	config.AfterConnect = func(context.Context, *pgx.Conn) error { after.Add(1); return nil }
	config.ConnConfig.AfterConnect = func(context.Context, *pgconn.PgConn) error { low.Add(1); return nil }
	config.ConnConfig.OnNotification = func(*pgconn.PgConn, *pgconn.Notification) {}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	testkit.NoError(t, err)
	defer pool.Close()
	r, err := postgres.Open(t.Context(), pool, schema, runner.Options{Dir: t.TempDir()})
	testkit.NoError(t, err)
	defer r.Close()
	testkit.Equal(t, "connections of the pool", pool.Stat().TotalConns(), 0)

	r.Register(count.Handler(func(context.Context, int) error { return nil }))
	defer work(t, r, runner.WorkOptions{Lease: time.Hour})()
	joined(t, r, 1)
	var task jobs.Task
	testkit.NoError(t, pgx.BeginFunc(t.Context(), pool, func(native pgx.Tx) error {
		tx, release, err := postgres.Tx(t.Context(), native)
		if err != nil {
			return err
		}
		defer release()
		task, err = r.EnqueueTx(t.Context(), tx, count.With(1))
		return err
	}))
	var path, tables string
	testkit.NoError(t, pool.QueryRow(t.Context(), `SHOW search_path`).Scan(&path))
	testkit.Equal(t, "search path of the pool", path, "public")
	testkit.NoError(t, pool.QueryRow(t.Context(), `SELECT to_regclass($1)::text`, schema+".tasks").Scan(&tables))
	testkit.Equal(t, "table", tables, schema+".tasks")
	pool.Close() // the Runner doesn't need it
	done, err := r.Await(t.Context(), task.ID)
	testkit.NoError(t, err)
	testkit.Equal(t, "state", done.State, jobs.Completed)
	for name, calls := range map[string]*atomic.Int64{"BeforeConnect": &before, "AfterConnect": &after, "AfterConnect of pgconn": &low} {
		if n := calls.Load(); n < 4 { // of the pool, and to write, read and listen
			t.Errorf("got %d calls of %s, want at least 4", n, name)
		}
	}
	_, err = postgres.Open(t.Context(), nil, "", runner.Options{})
	testkit.ErrorIs(t, err, jobs.ErrInvalid, "pool is nil")
	_, err = postgres.Open(t.Context(), pool, "Upper Case", runner.Options{})
	testkit.ErrorIs(t, err, jobs.ErrInvalid, "invalid schema")
}

func TestOpenReturnsCauseOfItsContext(t *testing.T) {
	pool, err := pgxpool.New(t.Context(), "postgres://nobody@localhost:1/none") // connects later
	testkit.NoError(t, err)
	defer pool.Close()
	cause := errors.New("the caller gave up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	_, err = postgres.Open(ctx, pool, "", runner.Options{})
	testkit.ErrorIs(t, err, cause)
}

func TestFailedAfterConnectLeavesNoConnectionOpen(t *testing.T) {
	config, err := pgxpool.ParseConfig(pgkit.Shared(t).Address("postgres", "search_path=public"))
	testkit.NoError(t, err)
	var connections []*pgx.Conn
	refused := errors.New("refused")
	config.AfterConnect = func(_ context.Context, c *pgx.Conn) error { connections = append(connections, c); return refused }
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	testkit.NoError(t, err)
	defer pool.Close()
	_, err = postgres.Open(t.Context(), pool, pgkit.NewSchema(), runner.Options{Dir: t.TempDir()})
	testkit.ErrorIs(t, err, refused)
	if len(connections) == 0 {
		t.Error("got no call of AfterConnect")
	}
	for i, c := range connections {
		testkit.Equal(t, "whether connection "+strconv.Itoa(i)+" is closed", c.IsClosed(), true)
	}
}
