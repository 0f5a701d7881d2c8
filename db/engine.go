package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jmoiron/sqlx"
)

// Engine is how to reach servers that databases can be on, in place of files. Package runner/postgres has one; without it a program links
// no driver for them.
type Engine struct {
	// Connect prepares connections to the database that address names; nothing is dialled yet. patience is how long a statement waits for
	// a lock. The error never holds a password.
	Connect func(address string, patience time.Duration) (Server, error)
}

// Server is one database on a server.
type Server struct {
	Name        string           // for people: the address without its password
	Schema      string           // of our tables
	Write, Read driver.Connector // connections that write, and some that cannot
	// Together sends statements on a connection of Write in one message. It returns the rows of the last one that has columns, and how many
	// each of them has changed, or returned. One that fails ends it; the list of these numbers ends before it.
	Together func(ctx context.Context, conn driver.Conn, list []Statement) (rows driver.Rows, affected []int64, err error)
	// Listen calls told with "" once it listens on a channel, then with each message there, until ctx ends or the connection breaks.
	Listen func(ctx context.Context, channel string, told func(message string)) error
}

// Statement is one with its arguments.
type Statement struct {
	Text string
	Args []driver.NamedValue
}

// OnServer says whether address names a database on a server, and not a file.
func OnServer(address string) bool {
	return strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://")
}

// serverConnector opens connections that can send statements together.
type serverConnector struct {
	driver.Connector
	begins   *begins
	together func(context.Context, driver.Conn, []Statement) (driver.Rows, []int64, error)
	reads    bool // and nothing else
}

func (c *serverConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, connectError{err}
	}
	return &serverConn{serverDriverConn: conn.(serverDriverConn), begins: c.begins, together: c.together, reads: c.reads}, nil
}

// connectError is why there is no connection, whatever the driver says to that: no server of several is one that can be written, for instance.
type connectError struct{ error }

func (e connectError) Unwrap() []error { return []error{e.error, errNoServer} }

// serverDriverConn is what a connection of the driver can do.
type serverDriverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.SessionResetter
	driver.Pinger
}

// serverConn is a connection to a server. Statements whose answer nobody needs wait for the next one and go with it: a transaction that has
// the lock keeps everybody waiting, most of all for messages that go there and back.
type serverConn struct {
	serverDriverConn
	begins   *begins
	together func(context.Context, driver.Conn, []Statement) (driver.Rows, []int64, error)
	reads    bool
	waiting  []Statement // in the words of the server
	begun    bool        // the first of them begins a transaction
	commits  bool        // the next statement is the last one of it
}

// beginError is the error of the beginning of a transaction, told by the first statement in it.
type beginError struct{ error }

func (e beginError) Unwrap() error { return e.error }

// later has statements sent with the next one.
func (c *serverConn) later(list ...Statement) { c.waiting = append(c.waiting, list...) }

func (c *serverConn) waits() bool { return c.waiting != nil || c.commits }

// begin has a transaction begin with the next statement.
func (c *serverConn) begin(shared bool) {
	lock := c.begins.exclusive
	if shared {
		lock = c.begins.shared
	}
	c.later(Statement{Text: "BEGIN"}, Statement{Text: lock})
	c.begun = true
}

// send sends a statement, and before it those that wait. Rows are nil unless it has some.
func (c *serverConn) send(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, int64, error) {
	list, begun, commits := append(c.waiting, Statement{text, args}), c.begun, c.commits
	c.waiting, c.begun, c.commits = nil, false, false
	switch {
	case begun && (text == rollback.Template || text == commit.Template && len(list) == 3): // it has done nothing
		return nil, 0, nil
	case text == rollback.Template: // what waits was to be done before
		list = list[len(list)-1:]
	case commits:
		list = append(list, Statement{Text: commit.Template})
	}
	rows, affected, err := c.together(ctx, c.serverDriverConn, list)
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
func (c *serverConn) exec(ctx context.Context, text string, args []driver.NamedValue, now func(context.Context, []driver.NamedValue) (driver.Result, error)) (driver.Result, error) {
	if c.waits() {
		_, n, err := c.send(ctx, text, args)
		return driver.RowsAffected(n), err
	}
	return now(ctx, args)
}

// query is exec for a statement that returns rows.
func (c *serverConn) query(ctx context.Context, text string, args []driver.NamedValue, now func(context.Context, []driver.NamedValue) (driver.Rows, error)) (driver.Rows, error) {
	if c.waits() {
		rows, _, err := c.send(ctx, text, args)
		return rows, err
	}
	rows, err := now(ctx, args)
	return rows, c.again(ctx, err)
}

// again has the pool ask another connection what this one, which was cut since it was last used, could not answer: reading twice is safe.
func (c *serverConn) again(ctx context.Context, err error) error {
	if c.reads && ctx.Err() == nil && isLost(err) {
		return driver.ErrBadConn
	}
	return err
}

func (c *serverConn) Prepare(text string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), text)
}

func (c *serverConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	stmt, err := c.serverDriverConn.PrepareContext(ctx, text)
	if err != nil {
		return nil, c.again(ctx, err)
	}
	return &serverStmt{stmt.(serverDriverStmt), c, text}, nil
}

func (c *serverConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	return c.exec(ctx, text, args, func(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
		return c.serverDriverConn.ExecContext(ctx, text, args)
	})
}

func (c *serverConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	return c.query(ctx, text, args, func(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
		return c.serverDriverConn.QueryContext(ctx, text, args)
	})
}

// serverDriverStmt is what a prepared statement of the driver can do.
type serverDriverStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type serverStmt struct {
	serverDriverStmt
	conn *serverConn
	text string
}

func (s *serverStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return s.conn.exec(ctx, s.text, args, s.serverDriverStmt.ExecContext)
}

func (s *serverStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return s.conn.query(ctx, s.text, args, s.serverDriverStmt.QueryContext)
}

// CheckNamedValue makes values that the server takes.
func (c *serverConn) CheckNamedValue(value *driver.NamedValue) (err error) {
	if value.Value, err = driver.DefaultParameterConverter.ConvertValue(value.Value); err == nil {
		value.Value = serverValue(value.Value)
	}
	return err
}

// serverValue makes numbers of flags, and of a text one that the server takes: it refuses a NUL, and what is not UTF-8.
func serverValue(value any) any {
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
func (s *server) pool(c driver.Connector, most int, reads bool) *sqlx.DB {
	pool := sqlx.NewDb(sql.OpenDB(&serverConnector{c, &s.begins, s.Together, reads}), "postgres")
	pool.SetMaxOpenConns(most)
	pool.SetMaxIdleConns(most)
	return pool
}
