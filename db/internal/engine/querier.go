package engine

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"

	"example.com/runner/db/internal/sqltext"
	"example.com/runner/jobs"
)

// Querier runs statements.
type Querier interface {
	// Exec returns the number of rows that a statement has changed.
	Exec(s *sqltext.Statement, args ...any) (int64, error)
	// Later does the same without a result. If the statement fails, the next
	// one may return the error.
	Later(s *sqltext.Statement, args ...any) error
	// Scan reads the single row of a query. It returns sql.ErrNoRows if there
	// is no row.
	Scan(s *sqltext.Statement, args []any, dest ...any) error
	// List reads the rows of a query into a slice.
	List(dest any, s *sqltext.Statement, args ...any) error
}

// Connection is a connection, or a pool of them.
type Connection interface {
	sqlx.QueryerContext
	sqlx.ExecerContext
}

// Direct is a Querier that sends each statement at once.
type Direct struct {
	Ctx     context.Context
	On      Connection
	Dialect *sqltext.Dialect
}

// ReadingFrom returns a Querier on the connections that can't write.
func ReadingFrom(ctx context.Context, e Engine) Direct { return Direct{ctx, e.Reader(), e.Dialect()} }

// Exec implements Querier.
func (d Direct) Exec(s *sqltext.Statement, args ...any) (int64, error) {
	result, err := d.On.ExecContext(d.Ctx, d.Dialect.Text(s), args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// Later implements Querier. It waits for the result.
func (d Direct) Later(s *sqltext.Statement, args ...any) error {
	_, err := d.Exec(s, args...)
	return err
}

// Scan implements Querier.
func (d Direct) Scan(s *sqltext.Statement, args []any, dest ...any) error {
	return d.On.QueryRowxContext(d.Ctx, d.Dialect.Text(s), args...).Scan(dest...)
}

// List implements Querier.
func (d Direct) List(dest any, s *sqltext.Statement, args ...any) error {
	return sqlx.SelectContext(d.Ctx, d.On, dest, d.Dialect.Text(s), args...)
}

// NoRow returns nil for sql.ErrNoRows, and other errors unchanged.
func NoRow(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

// SelectAtWork returns the name of a worker whose lease hasn't expired at [1],
// and when it does. Index: workers_live.
var SelectAtWork = sqltext.Query(`SELECT name, beat_at + lease FROM {workers} WHERE ended_at IS NULL AND beat_at + lease > ?
	ORDER BY beat_at DESC LIMIT 1`)

// OlderWorker returns an error if a worker is running, for a transaction that
// upgrades the schema of the database name. After that, a worker of the older
// program might fail to write results, and would ignore new options of tasks.
func OlderWorker(q Querier, name string) error {
	var worker string
	var until int64
	err := NoRow(q.Scan(SelectAtWork, []any{time.Now().UnixMilli()}, &worker, &until))
	if err != nil || until == 0 {
		return err
	}

	return &jobs.Error{Kind: jobs.ErrBusy, What: name + " is in use by an older runner",
		Why:  []string{"its worker " + worker + " is running", "it does not know the tasks of the new schema"},
		Hint: "again when that worker has stopped"}
}
