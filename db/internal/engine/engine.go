// Package engine is the boundary between package db and the database systems below it. It has one interface, Engine, with two
// implementations: sqlite.File, a database in an SQLite file, and postgres.Server, a database on a PostgreSQL server.
//
// Package db does everything that is the same on both: it claims, finishes and inserts tasks, groups commits, and owns lanes, limits,
// dependencies and schedules. It selects the engine once, in Open. All later code works with either engine. The engines differ in four
// ways:
//
//   - the text of statements: each dialect has its own fragments (package sqltext);
//   - the way to do a step, such as the beginning of a transaction: each step is a method of Engine;
//   - optimisations that pay on one engine only, such as many completions in one statement: each is a field of Traits;
//   - features that only one engine has, such as the backup of a file: each is a method, which returns a typed error or nothing on the
//     other engine.
//
// An engine owns its pools and the connections for reading. The writer of package db owns the connection that Open and Reconnect return.
// With this connection the writer calls the methods of Transactions, from one goroutine at a time. All other methods are safe for
// concurrent use.
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
	Shared
	Lifecycle
	Transactions
	Errors

	// Dialect returns the dialect that renders statements. The result is valid only after Open.
	Dialect() *sqltext.Dialect
	// Traits returns the properties of the engine. They never change.
	Traits() Traits
	// Values converts the arguments of a statement to values that a database handle of the caller accepts.
	Values(args []any) []any
	// Within prepares a transaction of the caller for the given use. It returns an error if the transaction belongs to another database.
	Within(q Querier, use Use) error

	// HighestID returns the highest id that a task has or had.
	HighestID(ctx context.Context) (int64, error)
	// RaiseIDs makes the next task id higher than the parameter "last", and the next worker number higher than the numbers in the table.
	RaiseIDs(ctx context.Context, q Querier, last int64) error
	// CheckSchema returns an error of kind ErrSchema if somebody has changed runner's tables, or added a trigger or an index to them.
	CheckSchema(ctx context.Context) error
	// Freezing returns the statements that create triggers on FrozenTables. The triggers reject all writes with the given message during a
	// migration to another database.
	Freezing(message string) []*sqltext.Statement
	// Thawing returns the statements that drop the triggers that Freezing creates.
	Thawing() []*sqltext.Statement
}

// Use says what the caller's transaction is used for. Each of the constants below includes the constants before it.
type Use int

const (
	Read   Use = iota // the transaction reads tasks
	Finish            // the transaction ends an attempt. On a server, Within takes the write lock
	Change            // the transaction enqueues or releases tasks. On a server, its commit notifies the workers
)

// Shared are the methods that package db offers to its callers unchanged.
type Shared interface {
	// Address returns the path or address with which db.Open opens the database. The address of a server includes the password.
	Address() string
	// Dir returns the directory on this host for the files of the database, such as result files. For a file it is PATH.d.
	Dir() string
	// MakeDir creates Dir if it is missing. Open creates it together with a new file, but a user may have copied the file without it.
	MakeDir() error
	// Created reports whether Open created the database.
	Created() bool
	// UpgradedFrom returns the version of the schema before Open upgraded it, or 0 if Open upgraded nothing.
	UpgradedFrom() int
	// Server describes the server. It returns nil for a file.
	Server() *ServerInfo

	// Replaced returns an error of kind ErrReplaced if the database is no longer the one that Open has opened, or if somebody has emptied
	// the file.
	Replaced() error
	// BusyRetries returns how often writes found the file locked by other processes and tried again.
	BusyRetries() int64
	// Size returns the sizes in bytes of the file and of its write-ahead log. On a server it returns the size of runner's tables, and 0.
	Size() (file, wal int64)
	// Space returns an error of kind ErrFull if the disk has no space for another task. It returns nil on a server, which reports a
	// full disk itself.
	Space() error
	// Integrity reads the whole file and returns the damage that it finds, or nil. If thorough is true, it also compares the indexes with
	// their tables.
	Integrity(ctx context.Context, thorough bool) ([]string, error)
	// Readers lists the processes that are reading the file now. While they read, SQLite cannot restart the write-ahead log. The list
	// is empty on systems that do not show locks.
	Readers() []Process
	// Unclean reports whether the file should be checked before it is used. That is so if a process ended without closing the file, and
	// if the file is small enough for a check.
	Unclean() bool

	// Backup writes a copy of the database to a file at the path in the parameter "to", with mode 0600, and returns the size of the file in
	// bytes. The copy is durable and appears complete or not at all. If the file exists, Backup returns an error of kind ErrConflict unless
	// replace is true. It never replaces a database that is in use.
	Backup(ctx context.Context, to string, replace bool) (int64, error)
	// BackupFile writes a copy of the database to a new file in Dir and returns the path of the file. The caller must remove the file.
	BackupFile(ctx context.Context) (string, error)

	// Watch starts to watch the database in the background until ctx ends. It calls the function "notify" after each commit of another
	// connection. One call can stand for several commits, and a commit of this process can also cause a call. The function "notify" must
	// not block.
	//
	// The argument "wakeups" is false if the commit only finished or claimed tasks, so no worker has to do anything. It is true in all
	// other cases, and if the engine does not know what the commit changed. On a server, the notification says what it changed. A file
	// doesn't tell.
	//
	// If every is not 0, the watch of a file checks for commits at this interval. Such a watch starts and ends faster, and its cost does
	// not depend on the number of commits.
	Watch(ctx context.Context, every time.Duration, notify func(wakeups bool))
	// WatchSlowly sets the pace of the watches that Watch has started with the interval 0. If slowly is true, they look for commits at most
	// every 20 ms. If it is false, they find commits as soon as they can.
	WatchSlowly(slowly bool)
}

// Lifecycle opens and closes a database.
type Lifecycle interface {
	// Name returns the path of the file, or the address without its password.
	Name() string
	// Identity returns a name that no other database has. The name of a server is not enough, because it can hold two databases.
	Identity() string

	// Open connects and returns the writer's connection. It creates or upgrades the tables if the options say so. The caller must call
	// Close after an error, too.
	Open(ctx context.Context) (*sqlx.Conn, error)
	// Reader returns the pool of connections that cannot write.
	Reader() *sqlx.DB
	// Reconnect opens a new connection for a writer. It returns an error of kind ErrReplaced if the database has other tables than at Open.
	Reconnect(ctx context.Context) (*sqlx.Conn, error)
	// Quit ends all watches.
	Quit()
	// BeforeClose prepares for the end of the last connection. The caller calls it before it closes that connection, and calls the returned
	// function after Close.
	BeforeClose() (release func())
	// Close closes the pools.
	Close() error
}

// Transactions has the methods for those steps of a write that each engine does in its own way.
type Transactions interface {
	// Begin starts a transaction and takes the write lock. If shared is true and the engine supports it, other shared transactions can hold
	// the lock at the same time. Begin calls the function "begin", which runs BEGIN IMMEDIATE.
	// The result "waited" reports whether other processes held the lock.
	Begin(conn *sqlx.Conn, shared bool, begin func() error) (waited bool, err error)
	// Later keeps a statement until the next statement is sent, and sends both in one message. It requires the trait Pipelines.
	Later(conn *sqlx.Conn, text string, args []any) error
	// CommitWithNext makes the next statement commit the transaction. It returns false if the engine does not support that.
	CommitWithNext(conn *sqlx.Conn) bool
	// SetLevel sets whether commits of the connection are durable when they return.
	SetLevel(ctx context.Context, conn *sqlx.Conn, durable bool) error
	// Committed does the checks of Replaced after a commit. The argument "changed" reports whether the commit has changed rows.
	Committed(changed bool) error
	// Notify notifies other processes of a commit. The argument "wakeups" reports whether workers may have something to do.
	Notify(wakeups bool)
	// Rest lets other processes take the lock. If other processes use the file, Rest waits for about the duration in the parameter "pause".
	Rest(pause time.Duration)
	// Vacuum returns some free pages to the filesystem, in a transaction on conn. It reports whether more free pages are left.
	Vacuum(ctx context.Context, conn *sqlx.Conn) (more bool, err error)
}

// Errors classifies the errors of the drivers.
type Errors interface {
	// Explain turns an error of the driver into a *jobs.Error if it can. It returns other errors and nil unchanged.
	Explain(err error) error
	// Busy reports whether err means that other processes held the lock.
	Busy(err error) bool
	// Broken reports whether the connection must be reopened after the error err.
	Broken(err error) bool
	// BeginFailed returns the reason why a transaction did not begin. The parameter "err" is the error of its first statement. BeginFailed
	// returns nil if the transaction did begin.
	BeginFailed(err error) error
	// Unanswered returns the error for a commit whose result is unknown. The parameter "err" is the error of its connection.
	Unanswered(err error) error
	// Refused reports whether a constraint or a trigger rejected a write.
	Refused(err error) bool
	// Asserted reports whether err means that an assertion in SQL failed. A failed assertion divides by zero.
	Asserted(err error) bool
}

// Traits are the properties of an engine. Package db uses them to choose the faster of two ways to do the same work.
type Traits struct {
	GivesIDs         bool // whether the engine assigns the ids of new tasks and returns them
	InsertMost       int  // greatest number of tasks that the inserter collects for one INSERT
	InsertsArrays    bool // whether one statement, with an array for each column as its arguments, inserts any number of tasks
	CompletesAsJSON  bool // whether one statement, with JSON as its argument, completes any number of tasks
	SingleStatements bool // whether one statement without BEGIN costs less than a transaction of BEGIN, statement and COMMIT
	Pipelines        bool // whether several statements can be sent in one message
	FastPath         bool // whether cycles that only complete and claim tasks run concurrently; see db/fastpath.go
	// OutlivedByClient reports whether a client still runs after a crash of the engine. Such a client relies on every write that
	// has returned without error. So only heartbeats may return before they are on the disk.
	OutlivedByClient bool
}

// Options are the options of db.Open. The zero Options opens an existing file for reading and writing.
type Options struct {
	Create   bool // create the file if it is missing
	ReadOnly bool // reject every write; Open fails if the schema needs an upgrade
	Normal   bool // skip the fsync of commits: a power failure may undo the last writes, but the crash of a program does not
	// Flash is for flash storage. It is the time from a commit to the sync of the write-ahead log: commits do not wait for an fsync, except
	// those of cycles that finish attempts. A new file gets small pages. The value 0 turns all this off. On a server the option has no
	// effect.
	Flash       time.Duration
	UnsafeFS    bool          // accept a network filesystem, where locks are unreliable
	Beside      bool          // allow a database of another program; the names of runner's tables in it get a prefix
	Prefix      string        // if Beside is set: prefix of the table names. Defaults to the prefix in the file, or to DefaultPrefix
	BusyTimeout time.Duration // how long a write waits for locks of other processes. Defaults to 5 s
	Alone       bool          // no other process writes the file: wait for a lock on the clock, which may be fake, not in the kernel
	Engine      *Driver       `json:"-"` // connects to the server; only for a database on a server
	// for a database on a server: directory on this host for its files. Defaults to the user's state directory
	Dir    string
	Driver string // database/sql driver of the write connection; it must wrap the driver of modernc.org/sqlite, which is the default
}

// Process is a process of this machine.
type Process struct {
	PID  int
	Name string
}

// ServerInfo describes the server that a database is on.
type ServerInfo struct {
	Version int64         // version of PostgreSQL, such as 150004
	Schema  string        // schema of runner's tables
	Tables  int           // version of runner's tables
	Skew    time.Duration // how far the clock of this host is ahead of the clock of the server
}

// Driver connects to servers. Package db/pgdriver has one, so that programs that use only files link no driver for servers.
type Driver struct {
	// Connect prepares connections to the database that address names. It does not dial yet. The parameter "patience" is the longest time
	// that a statement waits for a lock. The error never contains a password.
	Connect func(address string, patience time.Duration) (Connectors, error)
}

// Connectors connect to one database on a server.
type Connectors struct {
	Name        string           // address without the password, for messages
	Schema      string           // schema of runner's tables
	Write, Read driver.Connector // connectors for connections that write, and for connections that cannot write
	// Together sends statements on a connection of Write in one message. It returns the rows of the last statement that has columns. For
	// each statement it also returns the number of rows that the statement has changed or returned. After an error the server runs no
	// further statement, and affected holds only the numbers of the statements before the error.
	Together func(ctx context.Context, conn driver.Conn, list []Statement) (rows driver.Rows, affected []int64, err error)
	// Listen listens on a channel until ctx ends or the connection breaks. It calls the function "notify" with "" when it has begun to
	// listen, and then with each message of the channel.
	Listen func(ctx context.Context, channel string, notify func(message string)) error
}

// Statement is an SQL statement with its arguments.
type Statement struct {
	Text string
	Args []driver.NamedValue
}
