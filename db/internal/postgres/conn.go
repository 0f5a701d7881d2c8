package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"

	"example.com/runner/db/internal/engine"
)

// # Problem
//
// A transaction holds the write lock of the schema while other writers wait,
// and spends most of its time on round trips to the server. Without this file,
// BEGIN, the lock, each statement and COMMIT would each take one.
//
// # Invariants
//
//   - A statement whose result nobody needs waits in the session, which sends
//     it with the next one in one message, and the COMMIT with the last one.
//   - The server runs the statements of a message in order and stops at the
//     first error, so the error shows which statement failed. A beginError
//     means that the transaction didn't begin, so the caller may try again.
//   - A transaction without a statement sends nothing.
//   - If a connection that only reads is lost, its query is repeated on another
//     one, which is safe. A write is never repeated here.
//
// # Alternatives
//
// The driver has batches, but package db would need a second API for them, and
// write each statement twice. Sending statements without waiting for results
// would need goroutines and lose the order of errors. So the session wraps a
// connection of database/sql, and package db sees an ordinary *sqlx.Conn.

// connector opens connections that can send several statements in one message.
type connector struct {
	driver.Connector
	server *Server
	reads  bool // whether the connections only read and never write
}

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, connectError{err}
	}
	return &session{driverConn: conn.(driverConn), connector: c}, nil
}

// connectError is an error of the driver while it connects. Each is
// errNoServer, also if servers answer but none accepts writes.
type connectError struct{ error }

func (e connectError) Unwrap() []error { return []error{e.error, errNoServer} }

// driverConn has the methods that a connection of the driver must have.
type driverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ExecerContext
	driver.QueryerContext
	driver.SessionResetter
	driver.Pinger
}

// session is a connection to a server.
type session struct {
	driverConn
	connector *connector
	waiting   []engine.Statement // to send along with the next statement
	begun     bool               // whether the first waiting statement begins a transaction
	commits   bool               // whether the next statement is the transaction's last one
}

// beginError is the error of a BEGIN. The transaction's first statement returns
// it.
type beginError struct{ error }

func (e beginError) Unwrap() error { return e.error }

const (
	commit   = `COMMIT`
	rollback = `ROLLBACK`
)

// queue sends statements along with the next one.
func (c *session) queue(list ...engine.Statement) { c.waiting = append(c.waiting, list...) }

func (c *session) hasWaiting() bool { return c.waiting != nil || c.commits }

// begin makes the next statement begin a transaction.
func (c *session) begin(shared bool) {
	c.queue(engine.Statement{Text: "BEGIN"}, engine.Statement{Text: c.connector.server.takeLock(shared)})
	c.begun = true
}

// send sends the waiting statements and then this one, in one message. The
// result has no rows unless this one returns some.
func (c *session) send(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, int64, error) {
	list := append(c.waiting, engine.Statement{Text: text, Args: args})
	begun, commits := c.begun, c.commits
	c.waiting, c.begun, c.commits = nil, false, false

	switch {
	case begun && (text == rollback || text == commit && len(list) == 3): // an empty transaction
		return nil, 0, nil
	case text == rollback: // the server would roll the waiting ones back
		list = list[len(list)-1:]
	case commits:
		list = append(list, engine.Statement{Text: commit})
	}

	rows, affected, err := c.connector.server.SendAll(ctx, c.driverConn, list)
	if err != nil {
		if begun && len(affected) < 2 {
			err = beginError{err}
		}
		return nil, 0, err
	}
	if commits {
		affected = affected[:len(affected)-1]
	}

	return rows, affected[len(affected)-1], nil
}

// ExecContext sends a statement, in one message with those that are waiting.
func (c *session) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	if c.hasWaiting() {
		_, n, err := c.send(ctx, text, args)
		return driver.RowsAffected(n), err
	}
	return c.driverConn.ExecContext(ctx, text, args)
}

// QueryContext does the same for a statement that returns rows. If a connection
// that only reads was lost, it returns driver.ErrBadConn: the pool then repeats
// the query on another connection, which is safe for a read.
func (c *session) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	if c.hasWaiting() {
		rows, _, err := c.send(ctx, text, args)
		return rows, err
	}

	rows, err := c.driverConn.QueryContext(ctx, text, args)
	if c.connector.reads && ctx.Err() == nil && isLost(err) {
		return nil, driver.ErrBadConn
	}

	return rows, err
}

// Prepare returns a statement that sends nothing: pgx prepares each text
// itself, once per connection, when it's first used.
func (c *session) Prepare(text string) (driver.Stmt, error) { return Text{c, text}, nil }

// Text is a prepared statement of database/sql that only holds its text.
type Text struct {
	Conn interface {
		driver.ExecerContext
		driver.QueryerContext
	}
	Text string
}

func (Text) Close() error  { return nil }
func (Text) NumInput() int { return -1 }

// Exec and Query are never called: database/sql prefers the methods with a
// context.

func (Text) Exec([]driver.Value) (driver.Result, error) { return nil, errors.ErrUnsupported }
func (Text) Query([]driver.Value) (driver.Rows, error)  { return nil, errors.ErrUnsupported }

func (t Text) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return t.Conn.ExecContext(ctx, t.Text, args)
}

func (t Text) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return t.Conn.QueryContext(ctx, t.Text, args)
}

// CheckNamedValue converts a value to one that the server accepts.
func (c *session) CheckNamedValue(value *driver.NamedValue) (err error) {
	if value.Value, err = driver.DefaultParameterConverter.ConvertValue(value.Value); err == nil {
		value.Value = argument(value.Value)
	}
	return err
}

// argument converts a value to one that the server accepts: booleans become 0
// and 1, and U+FFFD replaces NUL and invalid UTF-8 in a string.
func argument(value any) any {
	switch value := value.(type) {
	case bool:
		if value {
			return int64(1)
		}
		return int64(0)
	case string:
		if strings.IndexByte(value, 0) >= 0 || !utf8.ValidString(value) {
			return strings.ReplaceAll(strings.ToValidUTF8(value, "\uFFFD"), "\x00", "\uFFFD")
		}
	}
	return value
}

// pool opens a pool of at most limit connections that can send several
// statements in one message.
func (s *Server) pool(c driver.Connector, limit int, reads bool) *sqlx.DB {
	pool := sqlx.NewDb(sql.OpenDB(&connector{c, s, reads}), "postgres")
	pool.SetMaxOpenConns(limit)
	pool.SetMaxIdleConns(limit)
	return pool
}
