package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"net/url"
	"strconv"
	"time"

	"example.com/runner/db/internal/engine"
)

// These are settings of the handles that OpenApplication returns. With
// database/sql's 2 idle connections, a busy program would reopen them all the
// time.
const (
	applicationPatience = 10 * time.Second // busy timeout
	applicationIdle     = 8                // idle connections
)

// OpenApplication opens a handle for an application that has tables of its own
// in the file at path. It creates the file if it's missing, and switches it to
// WAL mode. A transaction takes the write lock when it begins, unless it's
// read-only. driver is that of Options.Driver.
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
	handle, err := sql.Open(cmp.Or(driver, driverName), uri(d.path, url.Values{
		"mode":    {"rw"},
		"_txlock": {"immediate"},
		"_pragma": {patience, "synchronous(FULL)", "foreign_keys(1)", logLimit},
	}))
	if err == nil {
		handle.SetMaxIdleConns(applicationIdle)
	}

	return handle, err
}

// startLog switches the file to WAL mode, unless it's in that mode already.
func (d *File) startLog(ctx context.Context) error {
	pool, err := Connect(d.path, "rw", "busy_timeout(0)")
	if err != nil {
		return err
	}
	defer pool.Close()

	var mode string
	err = d.retryBusy(func() error { return d.Explain(pool.GetContext(ctx, &mode, "PRAGMA journal_mode")) })
	if err != nil || mode == "wal" {
		return err
	}

	return d.initialiseAlone(ctx, func() error { return d.walMode(ctx, pool) }) // pool has one connection
}
