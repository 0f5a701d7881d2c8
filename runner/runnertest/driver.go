package runnertest

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	_ "modernc.org/sqlite" // registers the driver that the type wrapper wraps

	"example.com/runner/db"
	"example.com/runner/runner"
)

// OpenDB opens a handle for the tables of the program in the file of r, as
// runner.OpenDB does. FailBeforeCommit and FailAfterCommit also make commits of
// its transactions fail. Like New, OpenDB uses no fsync. The end of the test
// closes the handle.
func OpenDB(t testing.TB, r *runner.Runner) *sql.DB {
	t.Helper()
	handle, err := db.OpenApplication(t.Context(), db.Of(r).Path(), driverName)
	if err != nil {
		t.Fatalf("runnertest: OpenDB: %v", err)
	}

	t.Cleanup(func() {
		if err := handle.Close(); err != nil {
			t.Errorf("runnertest: OpenDB: %v", err)
		}
	})
	return handle
}

const driverName = "sqlite-runnertest"

func init() {
	pool, err := sql.Open("sqlite", "")
	if err != nil {
		panic(err)
	}
	sql.Register(driverName, wrapper{pool.Driver()})
	_ = pool.Close() // returns no error, because the pool has opened no connection
}

// wrapper is the driver of SQLite without fsync, and with commits that can
// fail.
type wrapper struct{ driver.Driver }

// inner lists the interfaces that a connection of the SQLite driver implements.
type inner interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

// Open implements driver.Driver.
func (w wrapper) Open(name string) (driver.Conn, error) {
	file, err := url.Parse(name)
	if err != nil {
		return nil, err
	}

	query := file.Query()
	query.Add("_pragma", "synchronous(OFF)") // replaces an earlier value: SQLite uses the last value of a pragma
	file.RawQuery = query.Encode()
	c, err := w.Driver.Open(file.String())
	if err != nil {
		return nil, err
	}

	path := filepath.FromSlash(file.Path)
	if len(path) > 2 && path[2] == ':' { // on Windows the path is like /C:/dir/file
		path = path[1:]
	}

	return conn{c.(inner), path}, nil
}

type conn struct {
	inner
	path string
}

// PrepareContext implements driver.ConnPrepareContext.
func (c conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.inner.PrepareContext(ctx, query)
	if err != nil || !isCommit(query) {
		return s, err
	}
	return stmt{s.(innerStmt), c.path}, nil
}

// ExecContext implements driver.ExecerContext.
func (c conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	switch {
	case strings.Contains(query, " synchronous = "): // ignore this pragma, with which package db turns fsync on and off
		return driver.ResultNoRows, nil
	case !isCommit(query):
		return c.inner.ExecContext(ctx, query, args)
	}
	return commit(c.path, func() (driver.Result, error) { return c.inner.ExecContext(ctx, query, args) })
}

// BeginTx implements driver.ConnBeginTx.
func (c conn) BeginTx(ctx context.Context, options driver.TxOptions) (driver.Tx, error) {
	tx, err := c.inner.BeginTx(ctx, options)
	if err != nil || options.ReadOnly {
		return tx, err
	}
	return transaction{tx, c.path}, nil
}

func isCommit(query string) bool { return strings.EqualFold(strings.TrimSpace(query), "COMMIT") }

type innerStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// stmt is a prepared COMMIT.
type stmt struct {
	innerStmt
	path string
}

// ExecContext implements driver.StmtExecContext.
func (s stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return commit(s.path, func() (driver.Result, error) { return s.innerStmt.ExecContext(ctx, args) })
}

// transaction is a transaction that the program under test has begun on a
// handle of OpenDB.
type transaction struct {
	driver.Tx
	path string
}

// Commit implements driver.Tx.
func (t transaction) Commit() error {
	_, err := commit(t.path, func() (driver.Result, error) { return nil, t.Tx.Commit() })
	if err != nil {
		_ = t.Tx.Rollback() // fails if the transaction was committed
	}

	// A Runner of New does not watch the file, so it learns of the commit here.
	kits.Range(func(r, _ any) bool {
		if db.Of(r).Path() == t.path {
			db.Of(r).Notify()
		}
		return true
	})
	return err
}

// commit calls do, which commits a transaction. For a commit that
// FailBeforeCommit has chosen, it returns ErrInjected without that call; for
// one of FailAfterCommit, after a successful call.
func commit(path string, do func() (driver.Result, error)) (driver.Result, error) {
	before, fails := take(path)
	if fails && before {
		return nil, ErrInjected
	}
	done, err := do()
	if fails && err == nil {
		return nil, ErrInjected
	}
	return done, err
}
