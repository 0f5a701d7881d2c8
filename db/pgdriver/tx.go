package pgdriver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/runner/db/internal/postgres"
)

// rollbackTimeout is how long a rollback waits for the server.
const rollbackTimeout = 10 * time.Second

// Tx makes a transaction of pgx usable as a *sql.Tx; see package
// runner/postgres.
func Tx(ctx context.Context, tx pgx.Tx) (handle *sql.Tx, release func(), err error) {
	conn := &txConn{ctx: ctx, tx: tx}
	pool := sql.OpenDB(txConnector{conn})
	defer func() { _ = pool.Close() }() // ends the goroutine of sql.OpenDB; the transaction goes on
	// If the context of BeginTx ended, database/sql would roll back in another
	// goroutine, while the owner of tx may be using it.
	handle, err = pool.BeginTx(context.WithoutCancel(ctx), nil)
	return handle, func() {
		conn.released = true
		_ = handle.Rollback() // ends the goroutine of BeginTx
	}, err
}

// txConnector returns a connection on which a transaction has already begun.
type txConnector struct{ conn *txConn }

func (c txConnector) Connect(context.Context) (driver.Conn, error) { return c.conn, nil }
func (c txConnector) Driver() driver.Driver                        { return c }

// Open returns an error, because a transaction has no address.
func (txConnector) Open(string) (driver.Conn, error) { return nil, errors.ErrUnsupported }

// txConn is a connection of database/sql. Its only transaction is tx.
type txConn struct {
	ctx      context.Context // when it ends, Commit stops waiting for the server
	tx       pgx.Tx
	released bool // whether Rollback leaves tx as it is
}

var _ interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.Tx
} = (*txConn)(nil)

func (c *txConn) Begin() (driver.Tx, error)                                    { return c, nil }
func (c *txConn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return c, nil }
func (c *txConn) Close() error                                                 { return nil }
func (c *txConn) Commit() error                                                { return c.tx.Commit(c.ctx) }

// Rollback does nothing if the owner of tx has already ended it.
func (c *txConn) Rollback() error {
	if c.released {
		return nil
	}

	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), rollbackTimeout)
	defer cancel()
	if err := c.tx.Rollback(ctx); !errors.Is(err, pgx.ErrTxClosed) {
		return err
	}
	return nil
}

// CheckNamedValue accepts every value: pgx converts them itself.
func (*txConn) CheckNamedValue(*driver.NamedValue) error { return nil }

func (c *txConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	tag, err := c.tx.Exec(ctx, text, valuesOfArgs(args)...)
	return driver.RowsAffected(tag.RowsAffected()), err
}

func (c *txConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	result, err := c.tx.Query(ctx, text, valuesOfArgs(args)...)
	if err != nil {
		return nil, err
	}

	all, err := readAll(result, c.tx.Conn().TypeMap())
	if err != nil {
		return nil, err
	}

	return all, nil
}

// Prepare returns a statement that only holds its text.
func (c *txConn) Prepare(text string) (driver.Stmt, error) {
	return postgres.Text{Conn: c, Text: text}, nil
}

func valuesOfArgs(args []driver.NamedValue) []any {
	values := make([]any, len(args))
	for i, arg := range args {
		values[i] = arg.Value
	}
	return values
}
