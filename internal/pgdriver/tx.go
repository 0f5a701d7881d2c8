package pgdriver

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
)

// rollbackTimeout limits how long a rollback waits for the server.
const rollbackTimeout = 10 * time.Second

// Tx returns a handle of database/sql to a transaction of pgx. See Tx of package runner/postgres.
func Tx(ctx context.Context, tx pgx.Tx) (*sql.Tx, error) {
	pool := sql.OpenDB(txConnector{&txConn{ctx: ctx, tx: tx}})
	defer func() { _ = pool.Close() }() // the transaction keeps its connection, and the goroutine of the pool ends
	// Without the end of ctx, database/sql never rolls back on a goroutine of its own, where it could use tx at the same time as its owner.
	return pool.BeginTx(context.WithoutCancel(ctx), nil)
}

// txConnector returns the connection of a transaction that has begun already.
type txConnector struct{ conn *txConn }

func (c txConnector) Connect(context.Context) (driver.Conn, error) { return c.conn, nil }
func (c txConnector) Driver() driver.Driver                        { return c }

// Open returns an error, because a transaction has no address.
func (txConnector) Open(string) (driver.Conn, error) { return nil, errors.ErrUnsupported }

// txConn is a connection of database/sql whose only transaction is tx.
type txConn struct {
	ctx context.Context // ends the wait of Commit
	tx  pgx.Tx
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

// Rollback does nothing if the owner of tx has ended it already.
func (c *txConn) Rollback() error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.ctx), rollbackTimeout)
	defer cancel()
	if err := c.tx.Rollback(ctx); !errors.Is(err, pgx.ErrTxClosed) {
		return err
	}
	return nil
}

// CheckNamedValue accepts every value, because pgx converts them itself.
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

// Prepare returns a statement that is sent as text.
func (c *txConn) Prepare(text string) (driver.Stmt, error) { return &txStmt{c, text}, nil }

type txStmt struct {
	conn *txConn
	text string
}

func (*txStmt) Close() error  { return nil }
func (*txStmt) NumInput() int { return -1 }

// Exec is never called, because database/sql prefers ExecContext.
func (*txStmt) Exec([]driver.Value) (driver.Result, error) { return nil, errors.ErrUnsupported }

// Query is never called, because database/sql prefers QueryContext.
func (*txStmt) Query([]driver.Value) (driver.Rows, error) { return nil, errors.ErrUnsupported }

func (s *txStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.conn.ExecContext(ctx, s.text, args)
}

func (s *txStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.conn.QueryContext(ctx, s.text, args)
}

func valuesOfArgs(args []driver.NamedValue) []any {
	values := make([]any, len(args))
	for i, arg := range args {
		values[i] = arg.Value
	}
	return values
}
