package db

import (
	"context"
	"sync/atomic"

	"github.com/jmoiron/sqlx"
)

// Revisions tells whether anything was committed, for who looks now and then: unlike Watch it costs nothing in between, however much is
// written.
type Revisions struct {
	pool *sqlx.DB
	conn *sqlx.Conn
	path string

	told atomic.Int64       // of a server: notices
	stop context.CancelFunc // the listening for them
}

// Revisions opens a connection for looking. Close it.
func (d *DB) Revisions(ctx context.Context) (*Revisions, error) {
	if d.server != nil {
		r := &Revisions{}
		ctx, r.stop = context.WithCancel(context.WithoutCancel(ctx))
		d.listen(ctx, func(bool) { r.told.Add(1) })
		return r, nil
	}
	pool, err := connect(d.path, "rw", "busy_timeout(5000)", "query_only(1)")
	if err != nil {
		return nil, err
	}
	conn, err := pool.Connx(ctx)
	if err != nil {
		pool.Close()
		return nil, explain(err, d.path)
	}
	return &Revisions{pool: pool, conn: conn, path: d.path}, nil
}

// Now returns a number that differs from the last one if any process has committed meanwhile.
func (r *Revisions) Now(ctx context.Context) (n int64, err error) {
	if r.stop != nil {
		return r.told.Load(), nil
	}
	err = r.conn.QueryRowxContext(ctx, dataVersion).Scan(&n)
	return n, explain(err, r.path)
}

// Close ends the looking.
func (r *Revisions) Close() {
	if r.stop != nil {
		r.stop()
		return
	}
	r.conn.Close()
	r.pool.Close()
}
