// Package engine is the boundary between package db and the database systems
// below it: the interface Engine, implemented by sqlite.File (a file) and by
// postgres.Server (a database on a PostgreSQL server).
//
// Package db does everything that's the same on both: it claims, finishes and
// inserts tasks, groups commits, and owns lanes, limits, dependencies and
// schedules. It selects the engine once, in Open. The engines differ in four
// ways:
//
//   - the text of statements: each dialect has its own fragments (package
//     sqltext);
//   - how a step is done, such as the beginning of a transaction: a method of
//     Engine;
//   - optimisations that pay on one engine only: a field of Traits;
//   - features that only one engine has, such as the backup of a file: a
//     method, which returns a typed error or nothing on the other engine.
//
// An engine owns its pools and the connections for reading. The writer of
// package db owns the connection that Open and Reconnect return, and calls the
// methods of Transactions with it, from one goroutine at a time. All other
// methods are safe for concurrent use.
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

	// Dialect renders statements. It's valid after Open.
	Dialect() *sqltext.Dialect
	// Traits never change.
	Traits() Traits
	// Values converts the arguments of a statement to those that a database
	// handle of the caller accepts.
	Values(args []any) []any
	// Within prepares a transaction of the caller for a use. It returns an
	// error if the transaction belongs to another database.
	Within(q Querier, use Use) error

	// HighestID returns the highest id that a task has or had.
	HighestID(ctx context.Context) (int64, error)
	// RaiseIDs makes the next task id higher than last, and the next worker
	// number higher than those in the table.
	RaiseIDs(ctx context.Context, q Querier, last int64) error
	// CheckSchema returns an error of kind ErrSchema if somebody has changed
	// runner's tables, or added a trigger or an index to them.
	CheckSchema(ctx context.Context) error
	// Freezing returns the statements that create triggers on FrozenTables,
	// which reject all writes with the message.
	Freezing(message string) []*sqltext.Statement
	// Thawing returns the statements that drop these triggers.
	Thawing() []*sqltext.Statement
}

// Use says what the caller's transaction does. Each use includes those before
// it.
type Use int

const (
	Read   Use = iota // reads tasks
	Finish            // ends an attempt; on a server, Within takes the write lock
	Change            // enqueues or releases tasks; on a server, its commit notifies the workers
)

// Shared are the methods that package db offers to its callers unchanged.
type Shared interface {
	// Address returns what db.Open opens: a path, or an address with its
	// password.
	Address() string
	// Dir is the directory on this host for the files of the database, such as
	// results. For a file it's PATH.d.
	Dir() string
	// MakeDir creates Dir if it's missing. Open creates it with a new file, but
	// a user may have copied the file without it.
	MakeDir() error
	// Created reports whether Open created the database.
	Created() bool
	// UpgradedFrom returns the version of the schema before Open upgraded it,
	// or 0.
	UpgradedFrom() int
	// Server describes the server. It's nil for a file.
	Server() *ServerInfo

	// Replaced returns an error of kind ErrReplaced if the database is no
	// longer the one that Open has opened, or if somebody has emptied the file.
	Replaced() error
	// BusyRetries counts how often writes found the file locked and tried
	// again.
	BusyRetries() int64
	// Size returns the sizes in bytes of the file and of its WAL. On a server
	// it's the size of runner's tables, and 0.
	Size() (file, wal int64)
	// Space returns an error of kind ErrFull if the disk has no space for
	// another task. A server reports a full disk itself.
	Space() error
	// Used returns how many bytes the pages in use have, also those that the
	// open transaction has written. A server doesn't count them.
	Used(q Querier) (int64, error)
	// Integrity reads the whole file and returns the damage that it finds. If
	// thorough is true, it also compares the indexes with their tables.
	Integrity(ctx context.Context, thorough bool) ([]string, error)
	// Readers lists the processes that are reading the file now, where the
	// system shows locks. Meanwhile SQLite can't begin the WAL anew.
	Readers() []Process
	// Unclean reports whether the file should be checked before it's used: a
	// process ended without closing it, and it's small enough for a check.
	Unclean() bool

	// Backup writes a copy of the database to a file with mode 0600, and
	// returns its size. The copy is durable and appears complete or not at all.
	// A file that exists is an error of kind ErrConflict unless replace is
	// true, and a database in use always is.
	Backup(ctx context.Context, to string, replace bool) (int64, error)
	// BackupFile writes a copy of the database to a new file in Dir, which the
	// caller removes.
	BackupFile(ctx context.Context) (string, error)

	// Watch watches the database in the background until ctx ends, and calls
	// notify after commits of other connections. One call can stand for several
	// commits, and one of this process can also cause a call. notify must not
	// block. wakeups is false if the commit only finished or claimed tasks, so
	// workers have nothing to do; where the engine doesn't know, as with a
	// file, it's true.
	//
	// If every isn't 0, the watch of a file checks for commits at this
	// interval. It starts and ends faster then, and its cost doesn't grow with
	// the commits.
	Watch(ctx context.Context, every time.Duration, notify func(wakeups bool))
	// WatchSlowly sets the pace of the watches with the interval 0: at most
	// every 20 ms, or as soon as they can.
	WatchSlowly(slowly bool)
}

// Lifecycle opens and closes a database.
type Lifecycle interface {
	// Name returns the path of the file, or the address without its password.
	Name() string
	// Identity returns a name that no other database has. A server's name isn't
	// enough, because it can hold two databases.
	Identity() string

	// Open connects and returns the writer's connection. It creates or upgrades
	// the tables if the options say so. The caller must call Close after an
	// error, too.
	Open(ctx context.Context) (*sqlx.Conn, error)
	// Reader returns the pool of connections that can't write.
	Reader() *sqlx.DB
	// Reconnect opens a new connection for a writer. The error is of kind
	// ErrReplaced if the database has other tables than at Open.
	Reconnect(ctx context.Context) (*sqlx.Conn, error)
	// Quit ends all watches.
	Quit()
	// BeforeClose is called before the last connection is closed, and release
	// after Close.
	BeforeClose() (release func())
	// Close closes the pools.
	Close() error
}

// Transactions are the steps of a write that each engine does in its own way.
type Transactions interface {
	// Begin starts a transaction and takes the write lock. If shared is true,
	// other shared transactions can hold the lock at the same time, where the
	// engine supports it. begin runs BEGIN IMMEDIATE. waited reports whether
	// others held the lock.
	Begin(conn *sqlx.Conn, shared bool, begin func() error) (waited bool, err error)
	// Later sends a statement along with the next one, in one message. It needs
	// the trait Pipelines.
	Later(conn *sqlx.Conn, text string, args []any) error
	// CommitWithNext makes the next statement commit the transaction. It
	// returns false if the engine can't do that.
	CommitWithNext(conn *sqlx.Conn) bool
	// SetLevel sets whether commits of the connection are durable when they
	// return.
	SetLevel(ctx context.Context, conn *sqlx.Conn, durable bool) error
	// Committed does the checks of Replaced after a commit. changed says
	// whether it has changed rows.
	Committed(changed bool) error
	// Notify tells other processes of a commit. wakeups says whether workers
	// may have something to do.
	Notify(wakeups bool)
	// Rest leaves the lock to other processes for about pause, if there are
	// any.
	Rest(pause time.Duration)
	// Vacuum returns some free pages to the filesystem, in a transaction on
	// conn, and reports whether more are left.
	Vacuum(ctx context.Context, conn *sqlx.Conn) (more bool, err error)
}

// Errors classifies the errors of the drivers.
type Errors interface {
	// Explain turns an error of the driver into a *jobs.Error if it can. It
	// returns other errors and nil unchanged.
	Explain(err error) error
	// Busy reports whether other connections held the lock.
	Busy(err error) bool
	// Broken reports whether the connection must be reopened.
	Broken(err error) bool
	// BeginFailed returns why a transaction didn't begin, from the error of its
	// first statement, or nil if it did begin.
	BeginFailed(err error) error
	// Unanswered returns the error for a commit whose result is unknown, from
	// that of its connection.
	Unanswered(err error) error
	// Refused reports whether a constraint or a trigger rejected a write.
	Refused(err error) bool
	// Asserted reports whether an assertion in SQL failed, which divides by
	// zero then.
	Asserted(err error) bool
}

// Traits are the properties by which package db chooses the faster of two ways.
type Traits struct {
	GivesIDs         bool // the engine assigns the ids of new tasks and returns them
	InsertMost       int  // greatest number of tasks in one INSERT
	InsertsArrays    bool // one statement with an array for each column inserts any number of tasks
	CompletesAsJSON  bool // one statement with JSON completes any number of tasks
	SingleStatements bool // a statement without BEGIN costs less than BEGIN, statement and COMMIT
	Pipelines        bool // several statements can be sent in one message
	FastPath         bool // cycles that only complete and claim tasks run concurrently; see db/fastpath.go
	// OutlivedByClient says that clients survive a crash of the engine and rely
	// on each write, so only heartbeats may return before they are on the disk.
	OutlivedByClient bool
}

// Options are the options of db.Open. The zero Options opens an existing file
// for reading and writing.
type Options struct {
	Create   bool // create the file if it's missing
	ReadOnly bool // reject every write; Open fails if the schema needs an upgrade
	Normal   bool // skip the fsync of commits: a power failure may undo the last writes, the crash of a program doesn't
	// Flash is for flash storage: the time from a commit to the sync of the
	// WAL. Commits don't wait for an fsync, except those that finish attempts,
	// and a new file gets small pages. 0 turns this off. On a server it has no
	// effect.
	Flash       time.Duration
	UnsafeFS    bool          // accept a network filesystem, where locks are unreliable
	Beside      bool          // allow a database of another program; runner's tables in it get a prefix
	Prefix      string        // of the table names, with Beside. Defaults to that in the file, or to DefaultPrefix
	MaxBytes    int64         // pages in use from which tasks are deleted before one is added; 0 for no bound. Only for a file
	DropOldest  bool          // at MaxBytes, cancel the oldest waiting tasks when no finished task is left
	BusyTimeout time.Duration // how long a write waits for locks of other processes. Defaults to 5 s
	Alone       bool          // no other process writes the file: wait for a lock on the clock, which may be fake, not in the kernel
	Engine      *Driver       `json:"-"` // connects to the server; only for a database on a server
	Dir         string        // on this host, for the files of a database on a server. Defaults to the user's state directory
	Driver      string        // of database/sql for the write connection: one that wraps modernc.org/sqlite, the default
}

// Process is a process of this machine.
type Process struct {
	PID  int
	Name string
}

// ServerInfo describes the server that a database is on.
type ServerInfo struct {
	Version int64         // of PostgreSQL, such as 150004
	Schema  string        // of runner's tables
	Tables  int           // version of runner's tables
	Skew    time.Duration // how far this host's clock is ahead of the server's
}

// Driver connects to servers. Package db/pgdriver has one, so that programs
// that use only files link no driver for servers.
type Driver struct {
	// Connect prepares connections to the database that address names, without
	// dialling. patience is the longest time that a statement waits for a lock.
	// The error never contains a password.
	Connect func(address string, patience time.Duration) (Connectors, error)
}

// Connectors connect to one database on a server.
type Connectors struct {
	Name        string           // address without the password, for messages
	Schema      string           // of runner's tables
	Write, Read driver.Connector // for connections that write, and for those that can't
	// SendAll sends statements on a connection of Write in one message. It
	// returns the rows of the last statement that has columns, and for each
	// statement the number of rows that it has changed or returned. After an
	// error the server runs no further statement, and affected ends before the
	// failed one.
	SendAll func(ctx context.Context, conn driver.Conn, list []Statement) (rows driver.Rows, affected []int64, err error)
	// Listen listens on a channel until ctx ends or the connection breaks. It
	// calls notify with "" when it has begun to listen, and then with each
	// message.
	Listen func(ctx context.Context, channel string, notify func(message string)) error
}

// Statement is an SQL statement with its arguments.
type Statement struct {
	Text string
	Args []driver.NamedValue
}
