// Package engine is the boundary between package db and the database systems below it. It has one interface, Engine, with two
// implementations: sqlite.File, a database in an SQLite file, and postgres.Server, a database on a PostgreSQL server.
//
// Package db does everything that is the same on both: it claims, finishes and inserts tasks, groups commits, and owns lanes,
// limits, dependencies and schedules. It opens the right engine once, in Open, and asks nobody afterwards which engine it is. What
// an engine does differently is one of four things:
//
//   - words of a statement: a fragment of the engine's dialect (package sqltext);
//   - a different way to do a step, such as to begin a transaction: a method of Engine;
//   - a way that only pays on one engine, such as many completions in one statement: a field of Traits;
//   - something that only one engine has, such as the backup of a file: a method that returns a typed error, or nothing, on the other.
//
// An engine owns its pools and reads. The writer of package db owns the connection that Open and Reconnect return, and calls the
// methods of group "transactions" with it, from one goroutine at a time. All other methods are safe for many goroutines.
package engine

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/jmoiron/sqlx"

	"example.com/runner/db/internal/sqltext"
)

// Engine is one open database.
type Engine interface {
	Lifecycle
	Transactions
	Errors
	Files
	Changes

	// Dialect renders statements. It is known after Open.
	Dialect() *sqltext.Dialect
	// Traits returns what package db decides by. They never change.
	Traits() Traits
	// ClaimJob returns the template of the tasks of job i of n in a claim, of which tasks is the SELECT.
	ClaimJob(tasks string, i, n int) string
	// Values converts the arguments of a statement for a handle of the caller's.
	Values(args []any) []any
	// Within returns an error unless a transaction of the caller's is of this database. On a server it takes the write lock.
	Within(q Querier) error

	// HighestID returns the highest id that a task ever had.
	HighestID(ctx context.Context) (int64, error)
	// RaiseIDs makes the next id of a task higher than last, and the next number of a worker higher than those in the table.
	RaiseIDs(ctx context.Context, q Querier, last int64) error
	// CheckSchema returns an error of kind ErrSchema if somebody has changed runner's tables, or added a trigger or an index to them.
	CheckSchema(ctx context.Context) error
	// FrozenBy returns the query for the source of the trigger that refuses writes while the database is moved, and its argument.
	FrozenBy() (*sqltext.Statement, string)
	// Freezing returns the statements that replace triggers that refuse writes with the message is by those with the message text. An empty
	// message means no triggers.
	Freezing(is, text string) []string
}

// Lifecycle opens and closes a database.
type Lifecycle interface {
	// Name returns the path of the file, or the address without its password.
	Name() string
	// Address returns what Open of package db opens the database by. It may hold a password.
	Address() string
	// Identity tells the database from every other one: two databases may be on one server.
	Identity() string
	// Dir returns the directory of this host for what belongs to the database.
	Dir() string
	// MakeDir makes that directory if it is missing.
	MakeDir() error
	// Created reports whether Open made the database.
	Created() bool
	// Server describes the server; nil for a file.
	Server() *ServerInfo

	// Open connects, creates or upgrades the tables if the options say so, and returns the writer's connection. The caller calls
	// Close after an error, too.
	Open(ctx context.Context) (*sqlx.Conn, error)
	// Reader returns the pool of connections that cannot write.
	Reader() *sqlx.DB
	// Disconnecting is called before the writer closes its connection.
	Disconnecting()
	// Reconnect returns a new connection in place of a broken one, or the first one of the second writer. It returns an error of
	// kind ErrReplaced if the tables are not those that were opened.
	Reconnect(ctx context.Context, second bool) (*sqlx.Conn, error)
	// Quit ends watches.
	Quit()
	// BeforeClose is called before the writer closes its last connection. The caller calls release after Close.
	BeforeClose() (release func())
	// Close closes the pools.
	Close() error
}

// Transactions are the steps of a write that the engines do in different ways.
type Transactions interface {
	// Begin starts a transaction with the write lock. shared lets other transactions that begin so have it at the same time, where
	// the engine can do that. single reports that no other write of this process may follow soon. begin runs BEGIN IMMEDIATE.
	// waited reports whether others had the lock.
	Begin(conn *sqlx.Conn, shared, single bool, begin func() error) (waited bool, err error)
	// Later sends a statement together with the next one. Only an engine with the trait Pipelines can do that.
	Later(conn *sqlx.Conn, text string, args []any) error
	// CommitWithNext makes the next statement commit the transaction. It returns false if the engine cannot do that.
	CommitWithNext(conn *sqlx.Conn) bool
	// SetLevel sets whether a commit of the connection is on the disk when it returns.
	SetLevel(ctx context.Context, conn *sqlx.Conn, durable bool) error
	// CommitBegins is called before a commit that is sure to change something, and CommitEnds after each commit.
	CommitBegins()
	CommitEnds(failed bool)
	// Replaced returns an error of kind ErrReplaced if the database is not the one that was opened any more.
	Replaced() error
	// Committed is Replaced after a commit.
	Committed() error
	// Notify tells other processes of a commit. wakeups reports whether workers may have something to do.
	Notify(wakeups bool)
	// Awaited reports whether a short write of another process waits for the lock.
	Awaited() bool
	// Rest leaves the lock to other processes for a moment.
	Rest(pause time.Duration)
	// Leave ends a stretch of writing, at once or when no write follows within pause.
	Leave(now bool, pause time.Duration)
	// Space returns an error of kind ErrFull if the disk has no space for another task.
	Space() error
	// Vacuum gives some free pages back to the filesystem, in a transaction on conn. It reports whether there are more.
	Vacuum(ctx context.Context, conn *sqlx.Conn) (more bool, err error)
}

// Errors tells the errors of the drivers apart.
type Errors interface {
	// Explain turns an error of the driver into a *jobs.Error if it can. Other errors and nil pass.
	Explain(err error) error
	// ExplainWrite is Explain for an error of the writer.
	ExplainWrite(err error) error
	// Busy reports whether others had the lock.
	Busy(err error) bool
	// Broken reports whether the connection must be opened anew.
	Broken(err error) bool
	// BeginFailed returns why the transaction of a statement did not begin; nil if it did.
	BeginFailed(err error) error
	// Unanswered returns the error of a commit that may have happened or not, for err of its connection.
	Unanswered(err error) error
	// Refused reports whether a constraint or a trigger refused a write.
	Refused(err error) bool
	// Asserted reports whether err is that of an assertion that did not hold: a division by zero.
	Asserted(err error) bool
	// BusyRetries returns how often writes found the lock taken and tried again.
	BusyRetries() int64
}

// Files are questions about the file of a database. On a server they have empty answers, or errors of kind ErrInvalid.
type Files interface {
	Size() (file, wal int64)
	Backup(ctx context.Context, to string, replace bool) (int64, error)
	BackupFile(ctx context.Context) (string, error)
	Integrity(ctx context.Context, thorough bool) ([]string, error)
	Readers() []Process
	Unclean() bool
}

// Changes tell of commits.
type Changes interface {
	Watch(ctx context.Context, brief bool, told func(wakeups bool)) error
	WatchSlowly(slowly bool)
	Revisions(ctx context.Context) (Revisions, error)
	// CheckNotifications returns nil if notifications of this process come back to it from the server within patience.
	CheckNotifications(ctx context.Context, patience time.Duration) error
}

// Revisions tells whether anything was committed since the last question.
type Revisions interface {
	Now(ctx context.Context) (int64, error)
	Close()
}

// Traits are properties of an engine that decide which of two ways pays.
type Traits struct {
	GivesIDs         bool // the engine gives new tasks their ids, and returns them
	InsertMost       int  // rows of one INSERT
	CompletesAsJSON  bool // one statement completes any number of tasks, which it gets as JSON
	SingleStatements bool // a statement alone is a cheap transaction
	Pipelines        bool // statements can wait for each other and travel together
	FastPath         bool // turns that decide nothing run beside each other
	OutlivedByClient bool // the engine may forget commits in a crash that its clients live through: so all but heartbeats are durable
}

// Querier runs statements in a transaction.
type Querier interface {
	Exec(s *sqltext.Statement, args ...any) (int64, error)
	Scan(s *sqltext.Statement, args []any, dest ...any) error
}

// Options are those of package db that engines need.
type Options struct {
	Create      bool
	ReadOnly    bool
	Normal      bool
	UnsafeFS    bool
	Beside      bool
	Prefix      string
	BusyTimeout time.Duration
	Dir         string
	Driver      string
}

// Process is a process of this machine.
type Process struct {
	PID  int
	Name string
}

// ServerInfo describes the server that a database is on.
type ServerInfo struct {
	Version int64         // of PostgreSQL, as 150004
	Schema  string        // with our tables
	Tables  int           // the version of these
	Skew    time.Duration // of the clock of this host ahead of the server's
}

// Driver is how to reach servers. Package internal/pgdriver has one, so that programs that use files only link no driver for servers.
type Driver struct {
	// Connect prepares connections to the database that address names; nothing is dialled yet. patience is how long a statement waits for
	// a lock. The error never holds a password.
	Connect func(address string, patience time.Duration) (Connectors, error)
}

// Connectors reach one database on a server.
type Connectors struct {
	Name        string           // for people: the address without its password
	Schema      string           // of our tables
	Write, Read driver.Connector // connections that write, and some that cannot
	// Together sends statements on a connection of Write in one message. It returns the rows of the last one that has columns, and how many
	// each of them has changed, or returned. One that fails ends it; the list of these numbers ends before it.
	Together func(ctx context.Context, conn driver.Conn, list []Statement) (rows driver.Rows, affected []int64, err error)
	// Listen calls told with "" once it listens on a channel, then with each message there, until ctx ends or the connection breaks.
	Listen func(ctx context.Context, channel string, told func(message string)) error
}

// Statement is a text of SQL with its arguments.
type Statement struct {
	Text string
	Args []driver.NamedValue
}
