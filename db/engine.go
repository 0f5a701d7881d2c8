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
	// Listen calls told with "" once it listens on a channel, then with each message there, until ctx ends or the connection breaks.
	Listen func(ctx context.Context, channel string, told func(message string)) error
}

// OnServer says whether address names a database on a server, and not a file.
func OnServer(address string) bool {
	return strings.HasPrefix(address, "postgres://") || strings.HasPrefix(address, "postgresql://")
}

// serverConnector opens connections whose statements are in the dialect of the server.
type serverConnector struct {
	driver.Connector
	dialect *dialect
}

func (c *serverConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &serverConn{conn.(serverDriverConn), c.dialect}, nil
}

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

type serverConn struct {
	serverDriverConn
	dialect *dialect
}

func (c *serverConn) Prepare(text string) (driver.Stmt, error) {
	return c.serverDriverConn.Prepare(c.dialect.in(text))
}

func (c *serverConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	return c.serverDriverConn.PrepareContext(ctx, c.dialect.in(text))
}

func (c *serverConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	return c.serverDriverConn.ExecContext(ctx, c.dialect.in(text), args)
}

func (c *serverConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	return c.serverDriverConn.QueryContext(ctx, c.dialect.in(text), args)
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

// pool opens a pool of connections whose statements are in the dialect.
func (d *dialect) pool(c driver.Connector, most int) *sqlx.DB {
	pool := sqlx.NewDb(sql.OpenDB(&serverConnector{c, d}), "postgres")
	pool.SetMaxOpenConns(most)
	pool.SetMaxIdleConns(most)
	return pool
}
