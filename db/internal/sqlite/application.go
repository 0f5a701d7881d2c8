package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"net/url"
	"strconv"
	"time"

	"github.com/jmoiron/sqlx"

	"example.com/runner/db/internal/engine"
)

// applicationPatience is the busy timeout of handles that OpenApplication returns.
const applicationPatience = 10 * time.Second

// applicationIdle is the number of idle connections that a handle of OpenApplication keeps. The default of database/sql is 2. With so few,
// a busy program would open and close connections all the time.
const applicationIdle = 8

// OpenApplication opens a handle for an application that has tables of its own in the file at path. It creates the file if it is missing,
// and switches it to WAL mode. A transaction of the handle takes the write lock when it begins, unless the transaction is read-only. The
// parameter "driver" has the same meaning as Options.Driver.
func OpenApplication(ctx context.Context, path, driver string) (*sql.DB, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	d, err := New(path, engine.Options{Create: true, BusyTimeout: applicationPatience})
	if err != nil {
		return nil, err
	}
	defer d.lockOpening()()
	if err := d.find(); err != nil {
		return nil, err
	}
	if err := d.startLog(ctx); err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx)
	} else if err != nil {
		return nil, err
	}
	patience := "busy_timeout(" + strconv.FormatInt(applicationPatience.Milliseconds(), 10) + ")"
	handle, err := sql.Open(cmp.Or(driver, driverName), uri(d.path, url.Values{"mode": {"rw"}, "_txlock": {"immediate"},
		"_pragma": {patience, "synchronous(FULL)", "foreign_keys(1)", logLimit}}))
	if err == nil {
		handle.SetMaxIdleConns(applicationIdle)
	}
	return handle, err
}

// startLog switches the file to WAL mode, unless it is in that mode already.
func (d *File) startLog(ctx context.Context) error {
	pool, err := Connect(d.path, "rw", "busy_timeout(0)")
	if err != nil {
		return err
	}
	defer pool.Close()
	var conn *sqlx.Conn
	var mode string
	err = d.firstRead(ctx, pool, func(first *sqlx.Conn) error {
		conn = first
		return d.Explain(conn.QueryRowxContext(ctx, "PRAGMA journal_mode").Scan(&mode))
	})
	if conn != nil {
		defer conn.Close()
	}
	if err != nil || mode == "wal" {
		return err
	}
	return d.initialiseAlone(ctx, func() error { return d.walMode(ctx, conn) })
}
