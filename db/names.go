package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/jmoiron/sqlx"
	"modernc.org/sqlite"

	"example.com/runner/jobs"
)

// In a database of another program our tables, indexes, views and triggers have a prefix, so that they are beside its own, whatever it
// calls them. The statements of this package are written without; one place puts the prefix in, on the way to the driver. Where there is
// no prefix there is no such place, and no cost.
//
// Which prefix it is stands in the file, in the table runner_schema, with the version of the schema: application_id and user_version
// belong to the other program. So everybody who opens the file finds our tables in it, the command line, too.
//
// What was tried: a second file that is attached. A transaction over two files is not atomic in WAL mode, and that is what one wants
// from tables in the same database.

// DefaultPrefix is what the names of our tables begin with in a database of another program that says nothing else.
const DefaultPrefix = "runner_"

const maxPrefix = 32 // bytes

// names puts a prefix before the names of what the schema makes.
type names struct {
	prefix string
	known  sync.Map // from statements to statements
	n      atomic.Int64
}

// knownMost limits what names remembers: the statements of lists have no end.
const knownMost = 1000

// ours matches a name that the schema makes, and also what is none: comments and texts.
var ours = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`--[^\n]*|'(?:[^']|'')*'|\b(?:` + strings.Join(made(), "|") + `)\b`)
})

// made lists the names that the schema makes, on its way, too.
func made() []string {
	create := regexp.MustCompile(`(?m)^(?:CREATE (?:UNIQUE )?|DROP )(?:TABLE|INDEX|VIEW|TRIGGER) (?:IF NOT EXISTS )?(\w+)|^ALTER TABLE (\w+) RENAME TO (\w+)`)
	var words []string
	for _, m := range migrationsFrom(convertedVersion) {
		for _, match := range create.FindAllStringSubmatch(m.text(), -1) {
			for _, word := range match[1:] {
				if word != "" {
					words = append(words, word)
				}
			}
		}
	}
	slices.Sort(words)
	return slices.Compact(words)
}

// in returns a statement with the prefix before our names.
func (n *names) in(text string) string {
	if n == nil {
		return text
	}
	return n.remembered(text, n.put)
}

// remembered returns what a statement is changed to, which is worked out once.
func (n *names) remembered(text string, change func(string) string) string {
	if done, ok := n.known.Load(text); ok {
		return done.(string)
	}
	done := change(text)
	if n.n.Add(1) <= knownMost {
		n.known.Store(text, done)
	}
	return done
}

// put puts the prefix into a statement.
func (n *names) put(text string) string {
	return ours().ReplaceAllStringFunc(text, func(word string) string {
		if word[0] == '-' || word[0] == '\'' {
			return word
		}
		return n.prefix + word
	})
}

// ValidPrefix says whether names may begin with it: a letter or underscore, then at most 31 letters, digits or underscores.
func ValidPrefix(prefix string) error {
	ok := len(prefix) <= maxPrefix && !strings.HasPrefix(strings.ToLower(prefix), "sqlite_")
	for i := range len(prefix) {
		c := prefix[i]
		ok = ok && (c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || i > 0 && '0' <= c && c <= '9')
	}
	if ok {
		return nil
	}
	return &jobs.FieldError{Field: "prefix", Msg: fmt.Sprintf("%q: a letter or _, then at most %d letters, digits or _; not sqlite_", prefix, maxPrefix-1)}
}

// Text returns a statement that names our tables as the schema does, as it must be sent to this file, or server.
func (d *DB) Text(statement string) string {
	if d.server != nil {
		return d.server.dialect.in(statement)
	}
	return d.names.in(statement)
}

// values are the arguments of a statement for a handle of the caller's.
func (d *DB) values(args []any) []any {
	if d.server != nil {
		for i := range args {
			args[i] = serverValue(args[i])
		}
	}
	return args
}

// PathOf returns the path of the file that a handle has open. It must be of the driver that this package uses: two copies of SQLite in
// one process break each other's locks.
func PathOf(ctx context.Context, handle *sql.DB) (string, error) {
	if _, ok := handle.Driver().(*sqlite.Driver); !ok {
		return "", &jobs.Error{Kind: jobs.ErrInvalid, What: fmt.Sprintf("the handle is of another driver: %T", handle.Driver()),
			Why: []string{"two copies of SQLite in one process break each other's locks"}, Hint: `sql.Open("sqlite", …) of modernc.org/sqlite`}
	}
	var file string
	if err := handle.QueryRowContext(ctx, selectMain).Scan(&file); err != nil {
		return "", explain(err, "the handle's file")
	}
	if file == "" {
		return "", &jobs.Error{Kind: jobs.ErrInvalid, What: "the handle's database is in memory", Hint: "a database in a file"}
	}
	return file, nil
}

// connector opens connections whose statements get the prefix.
type connector struct {
	driver driver.Driver
	dsn    string
	names  *names
}

func (c *connector) Driver() driver.Driver { return c.driver }

func (c *connector) Connect(context.Context) (driver.Conn, error) {
	conn, err := c.driver.Open(c.dsn)
	if err != nil {
		return nil, err
	}
	return &namedConn{conn.(driverConn), c.names}, nil
}

// driverConn is what a connection of the driver can do.
type driverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
	driver.Pinger
}

type namedConn struct {
	driverConn
	names *names
}

func (c *namedConn) Prepare(text string) (driver.Stmt, error) {
	return c.driverConn.Prepare(c.names.in(text))
}

func (c *namedConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	return c.driverConn.PrepareContext(ctx, c.names.in(text))
}

func (c *namedConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	return c.driverConn.ExecContext(ctx, c.names.in(text), args)
}

func (c *namedConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	return c.driverConn.QueryContext(ctx, c.names.in(text), args)
}

// pool opens a pool whose statements get the prefix, if there is one.
func (n *names) pool(name, dsn string) (*sqlx.DB, error) {
	pool, err := sqlx.Open(name, dsn)
	if err != nil || n == nil {
		return pool, err
	}
	named := sqlx.NewDb(sql.OpenDB(&connector{pool.Driver(), dsn, n}), driverName)
	return named, pool.Close()
}
