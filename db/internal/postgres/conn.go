package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"

	"example.com/runner/db/internal/engine"
)

// connector opens connections that can send statements together.
type connector struct {
	driver.Connector
	begins   *begins
	together func(context.Context, driver.Conn, []engine.Statement) (driver.Rows, []int64, error)
	reads    bool // and nothing else
}

func (c *connector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, connectError{err}
	}
	return &session{driverConn: conn.(driverConn), begins: c.begins, together: c.together, reads: c.reads}, nil
}

// connectError is why there is no connection, whatever the driver says to that: no server of several is one that can be written,
// for instance.
type connectError struct{ error }

func (e connectError) Unwrap() []error { return []error{e.error, errNoServer} }

// driverConn is what a connection of the driver can do.
type driverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.SessionResetter
	driver.Pinger
}

// session is a connection to a server. Statements whose answer nobody needs wait for the next one and go with it: a transaction that has
// the lock keeps everybody waiting, most of all for messages that go there and back.
type session struct {
	driverConn
	begins   *begins
	together func(context.Context, driver.Conn, []engine.Statement) (driver.Rows, []int64, error)
	reads    bool
	waiting  []engine.Statement // in the words of the server
	begun    bool               // the first of them begins a transaction
	commits  bool               // the next statement is the last one of it
}

// beginError is the error of the beginning of a transaction, told by the first statement in it.
type beginError struct{ error }

func (e beginError) Unwrap() error { return e.error }

const (
	commit   = `COMMIT`
	rollback = `ROLLBACK`
)

// later has statements sent with the next one.
func (c *session) later(list ...engine.Statement) { c.waiting = append(c.waiting, list...) }

func (c *session) waits() bool { return c.waiting != nil || c.commits }

// begin has a transaction begin with the next statement.
func (c *session) begin(shared bool) {
	lock := c.begins.exclusive
	if shared {
		lock = c.begins.shared
	}
	c.later(engine.Statement{Text: "BEGIN"}, engine.Statement{Text: lock})
	c.begun = true
}

// send sends a statement, and before it those that wait. Rows are nil unless it has some.
func (c *session) send(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, int64, error) {
	list, begun, commits := append(c.waiting, engine.Statement{Text: text, Args: args}), c.begun, c.commits
	c.waiting, c.begun, c.commits = nil, false, false
	switch {
	case begun && (text == rollback || text == commit && len(list) == 3): // it has done nothing
		return nil, 0, nil
	case text == rollback: // what waits was to be done before
		list = list[len(list)-1:]
	case commits:
		list = append(list, engine.Statement{Text: commit})
	}
	rows, affected, err := c.together(ctx, c.driverConn, list)
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

// exec runs a statement, now or with those that wait.
func (c *session) exec(ctx context.Context, text string, args []driver.NamedValue,
	now func(context.Context, []driver.NamedValue) (driver.Result, error)) (driver.Result, error) {
	if c.waits() {
		_, n, err := c.send(ctx, text, args)
		return driver.RowsAffected(n), err
	}
	return now(ctx, args)
}

// query is exec for a statement that returns rows.
func (c *session) query(ctx context.Context, text string, args []driver.NamedValue,
	now func(context.Context, []driver.NamedValue) (driver.Rows, error)) (driver.Rows, error) {
	if c.waits() {
		rows, _, err := c.send(ctx, text, args)
		return rows, err
	}
	rows, err := now(ctx, args)
	return rows, c.again(ctx, err)
}

// again has the pool ask another connection what this one, which was cut since it was last used, could not answer: reading twice is safe.
func (c *session) again(ctx context.Context, err error) error {
	if c.reads && ctx.Err() == nil && isLost(err) {
		return driver.ErrBadConn
	}
	return err
}

func (c *session) Prepare(text string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), text)
}

func (c *session) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	stmt, err := c.driverConn.PrepareContext(ctx, text)
	if err != nil {
		return nil, c.again(ctx, err)
	}
	return &sessionStmt{stmt.(driverStmt), c, text}, nil
}

func (c *session) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	return c.exec(ctx, text, args, func(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
		return c.driverConn.ExecContext(ctx, text, args)
	})
}

func (c *session) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	return c.query(ctx, text, args, func(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
		return c.driverConn.QueryContext(ctx, text, args)
	})
}

// driverStmt is what a prepared statement of the driver can do.
type driverStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type sessionStmt struct {
	driverStmt
	conn *session
	text string
}

func (s *sessionStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.conn.exec(ctx, s.text, args, s.driverStmt.ExecContext)
}

func (s *sessionStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.conn.query(ctx, s.text, args, s.driverStmt.QueryContext)
}

// CheckNamedValue makes values that the server takes.
func (c *session) CheckNamedValue(value *driver.NamedValue) (err error) {
	if value.Value, err = driver.DefaultParameterConverter.ConvertValue(value.Value); err == nil {
		value.Value = argument(value.Value)
	}
	return err
}

// argument makes numbers of flags, and of a text one that the server takes: it refuses a NUL, and what is not UTF-8.
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

// pool opens a pool of connections that can send statements together.
func (s *Server) pool(c driver.Connector, most int, reads bool) *sqlx.DB {
	pool := sqlx.NewDb(sql.OpenDB(&connector{c, &s.begins, s.Together, reads}), "postgres")
	pool.SetMaxOpenConns(most)
	pool.SetMaxIdleConns(most)
	return pool
}
