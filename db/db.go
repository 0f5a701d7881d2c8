package db

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/postgres"
	"example.com/runner/db/internal/sqlite"
	"example.com/runner/db/internal/sqltext"
	"example.com/runner/db/schema"
)

// These are the types of the engines that callers of this package use.
type (
	// Engine connects to database servers. Package internal/pgdriver has one. A program that does not use it links no driver for
	// servers.
	Engine = engine.Driver
	// Server connects to one database on a server.
	Server = engine.Connectors
	// Statement is a text of SQL with its arguments.
	Statement = engine.Statement
	// ServerInfo describes the server that a database is on.
	ServerInfo = engine.ServerInfo
	// Process is a process of this machine.
	Process = engine.Process
	// Disk describes the filesystem that a database is on.
	Disk = sqlite.Disk
)

// DefaultPrefix is the default prefix of the names of runner's tables in a database of another program.
const DefaultPrefix = sqlite.DefaultPrefix

// SelectBackend returns the process id of the server's process for the connection.
const SelectBackend = postgres.SelectBackend

// OnServer reports whether address names a database on a server, and not a file.
func OnServer(address string) bool { return postgres.Address(address) }

// EngineVersion returns the version of SQLite that is linked in, as in "3.54.1".
func EngineVersion() string { return sqlite.Version() }

// SchemaVersion returns the version of the schema of files that this program writes.
func SchemaVersion() int { return schema.Version(schema.SQLite) }

// DiskOf describes the filesystem of the database at path, which need not exist.
func DiskOf(path string) Disk { return sqlite.DiskOf(path) }

// ValidPrefix returns an error unless prefix is valid: a letter or underscore, then at most 31 letters, digits or underscores.
func ValidPrefix(prefix string) error { return sqlite.ValidPrefix(prefix) }

// Options are the options of Open. The zero Options opens an existing file for reading and writing.
type Options struct {
	Create      bool          // create the file if it is missing
	ReadOnly    bool          // reject every write, and a schema that needs an upgrade
	Normal      bool          // skip the fsync of commits: a power failure may undo the last writes; a crash of a program undoes none
	UnsafeFS    bool          // accept a network filesystem, where locks are unreliable
	Beside      bool          // allow a database of another program: runner adds its tables to it, with a prefix
	Prefix      string        // with Beside: prefix of the table names. Defaults to the one in the file, or to DefaultPrefix
	BusyTimeout time.Duration // how long a write waits for locks of other processes. Defaults to 5 s
	Engine      *Engine       `json:"-"` // for a database on a server: the engine that connects to it
	// for a database on a server: directory on this host for its files. Defaults to the user's state directory
	Dir    string
	Driver string // database/sql driver of the write connection, which must wrap that of modernc.org/sqlite. Defaults to the latter
}

// DB is an open database. It is safe for use by many goroutines.
type DB struct {
	engine  engine.Engine
	traits  engine.Traits
	path    string           // name of the database for messages
	sql     *sqltext.Dialect // renders statements
	read    *sqlx.DB         // connections that cannot write
	options Options

	writer
	claims writer // writer of claims on the fast path; its own connection is opened when first used

	lastTx  atomic.Value // weak.Pointer[sql.Tx]: transaction of a caller that was last checked to be of this database
	closing sync.Once
}

// Open opens the database file at path, or the database on a server if path is its address. It creates the database if the options say
// so, and upgrades its schema. Errors are *jobs.Error of kind ErrNoDatabase, ErrSchema, ErrPermission, ErrBusy, ErrCorrupt or
// ErrInvalid; after such an error nothing has changed.
func Open(ctx context.Context, path string, options Options) (*DB, error) {
	if options.BusyTimeout == 0 {
		options.BusyTimeout = 5 * time.Second
	}
	d := &DB{options: options}
	err := d.choose(path)
	if err != nil {
		return nil, err
	}
	d.path, d.traits = d.engine.Name(), d.engine.Traits()
	if d.conn, err = d.engine.Open(ctx); err != nil {
		d.engine.Quit()
		_ = d.engine.Close()
		return nil, err
	}
	d.sql, d.read = d.engine.Dialect(), d.engine.Reader()
	d.writer.start(d)
	d.claims.start(d)
	d.claims.broken = true
	return d, nil
}

// choose sets the engine for a path or an address.
func (d *DB) choose(path string) (err error) {
	o := d.options
	options := engine.Options{Create: o.Create, ReadOnly: o.ReadOnly, Normal: o.Normal, UnsafeFS: o.UnsafeFS, Beside: o.Beside,
		Prefix:      o.Prefix,
		BusyTimeout: o.BusyTimeout, Dir: o.Dir, Driver: o.Driver}
	if OnServer(path) {
		d.engine, err = postgres.New(path, o.Engine, options)
	} else {
		d.engine, err = sqlite.New(path, options)
	}
	return err
}

// Path returns the absolute path of the file, with symlinks resolved. For a database on a server it returns the address without the
// password.
func (d *DB) Path() string { return d.path }

// Address returns the path or address with which Open opens this database. The address of a server includes the password.
func (d *DB) Address() string { return d.engine.Address() }

// Dir returns the directory on this host for the files of the database, such as result files. For a file it is PATH.d.
func (d *DB) Dir() string { return d.engine.Dir() }

// MakeDir creates Dir if it is missing. Open creates it with the file, but a user may have copied the file without it.
func (d *DB) MakeDir() error { return d.engine.MakeDir() }

// Created reports whether this Open created the database.
func (d *DB) Created() bool { return d.engine.Created() }

// Prefix returns the prefix of the names of runner's tables: empty in a file of runner's own, and a schema with its dot on a server.
func (d *DB) Prefix() string { return d.sql.Prefix }

// Server describes the server. It returns nil for a file.
func (d *DB) Server() *ServerInfo { return d.engine.Server() }

// Close waits for the writes in progress, rejects later ones with ErrClosed, and closes the database. A second call does nothing.
func (d *DB) Close() error {
	var err error
	d.closing.Do(func() {
		d.engine.Quit()
		d.claims.stop()
		defer d.engine.BeforeClose()()
		d.writer.stop()
		err = d.engine.Close()
	})
	return err
}

// explain turns an error of the driver into a *jobs.Error that explains it. It returns other errors and nil unchanged.
func (d *DB) explain(err error) error { return d.engine.Explain(err) }

// Replaced returns an error of kind ErrReplaced if the path no longer leads to the file that this process has open, or if somebody has
// overwritten the file.
func (d *DB) Replaced() error { return d.engine.Replaced() }

// BusyRetries returns how often writes found the file locked by other processes and tried again.
func (d *DB) BusyRetries() int64 { return d.engine.BusyRetries() }

// Size returns the sizes in bytes of the file and of its write-ahead log. On a server it returns the size of runner's tables, and 0.
func (d *DB) Size() (file, wal int64) { return d.engine.Size() }

// Space returns an error of kind ErrFull if the disk has no space for another task. It returns nil on a server, which reports a full
// disk itself.
func (d *DB) Space() error { return d.engine.Space() }

// Backup writes a copy of the database to the file to, with mode 0600, and returns its size in bytes. The copy is durable and appears
// complete or not at all. If to exists, Backup returns an error of kind ErrConflict unless replace is true. It never replaces a
// database that is in use.
func (d *DB) Backup(ctx context.Context, to string, replace bool) (int64, error) {
	return d.engine.Backup(ctx, to, replace)
}

// BackupFile writes a copy of the database to a new file in Dir and returns its path. It is for callers that pass the copy on.
func (d *DB) BackupFile(ctx context.Context) (string, error) { return d.engine.BackupFile(ctx) }

// Watch calls told when another connection has committed. One call may stand for several commits, and a commit of this process may
// cause a call. wakeups reports whether workers may have something to do. It is false for some commits of which the engine knows that
// they only finish or claim tasks: those are notified as such on a server, and made by the writer of this DB in a file.
//
// told must not block. If every is not 0, the watch of a file looks for commits at that pace. It then starts and ends faster, and its
// cost does not depend on the number of commits. Watch runs in the background until ctx ends.
func (d *DB) Watch(ctx context.Context, every time.Duration, told func(wakeups bool)) error {
	return d.engine.Watch(ctx, every, told)
}

// WatchSlowly sets the pace of Watch: with true it looks for commits at most every 20 ms, else as soon as it can.
func (d *DB) WatchSlowly(slowly bool) { d.engine.WatchSlowly(slowly) }

// CheckNotifications sends a notification through the server and waits for it. It returns an error of kind ErrInvalid if the
// notification does not arrive within patience. It returns nil for files, which need no notifications.
func (d *DB) CheckNotifications(ctx context.Context, patience time.Duration) error {
	return d.engine.CheckNotifications(ctx, patience)
}
