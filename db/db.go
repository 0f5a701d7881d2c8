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

// Types of the engines that callers of this package meet.
type (
	// Engine is how to reach servers that databases can be on, in place of files. Package internal/pgdriver has one; without it a
	// program links no driver for them.
	Engine = engine.Driver
	// Server reaches one database on a server.
	Server = engine.Connectors
	// Statement is a text of SQL with its arguments.
	Statement = engine.Statement
	// ServerInfo describes the server that a database is on.
	ServerInfo = engine.ServerInfo
	// Process is a process of this machine.
	Process = engine.Process
	// Revisions tells whether anything was committed since the last question. It costs nothing between questions.
	Revisions = engine.Revisions
	// Disk describes the filesystem that a database is on.
	Disk = sqlite.Disk
)

// DefaultPrefix is what the names of our tables begin with in a database of another program that says nothing else.
const DefaultPrefix = sqlite.DefaultPrefix

// SelectBackend returns which process of a server answers.
const SelectBackend = postgres.SelectBackend

// OnServer reports whether address names a database on a server, and not a file.
func OnServer(address string) bool { return postgres.Address(address) }

// EngineVersion returns the version of SQLite that is linked in, as in "3.54.1".
func EngineVersion() string { return sqlite.Version() }

// SchemaVersion returns the version of the schema of files that this program writes.
func SchemaVersion() int { return schema.Version(schema.SQLite) }

// DiskOf describes the filesystem of the database at path, which need not exist.
func DiskOf(path string) Disk { return sqlite.DiskOf(path) }

// ValidPrefix returns an error unless names may begin with prefix: a letter or underscore, then at most 31 letters, digits or underscores.
func ValidPrefix(prefix string) error { return sqlite.ValidPrefix(prefix) }

// Options of Open. The zero Options opens a file that exists, for reading and writing.
type Options struct {
	Create      bool          // make the file when there is none
	ReadOnly    bool          // refuse every write, and a schema that would have to be upgraded first
	Normal      bool          // leave out every fsync of a commit: a power cut may undo the last writes, a crash of a program none
	UnsafeFS    bool          // accept a network filesystem, on which locks cannot be trusted
	Beside      bool          // the file may be of another program: our tables are beside its own, with a prefix
	Prefix      string        // with Beside: that prefix. Defaults to the one in the file, or to DefaultPrefix
	BusyTimeout time.Duration // how long a write waits for other processes' locks. Defaults to 5 s
	Engine      *Engine       `json:"-"` // for a database on a server: how to reach it
	// for a database on a server: where this host keeps what belongs to it. Defaults to the user's state directory
	Dir    string
	Driver string // of database/sql, for the connection that writes: it wraps the one of modernc.org/sqlite. Defaults to that
}

// DB is an open database. It is safe for use by many goroutines.
type DB struct {
	engine  engine.Engine
	traits  engine.Traits
	path    string           // name of the database, for people
	sql     *sqltext.Dialect // renders statements
	read    *sqlx.DB         // connections that cannot write
	options Options

	writer
	claims writer // of claims on the fast path, with a connection of its own that is opened when first used

	lastTx  atomic.Value // weak.Pointer[sql.Tx]: of the caller's that was last seen to be of this database
	closing sync.Once
}

// Open opens the database file at path, or the database on a server that path is the address of. It creates the database if the
// options say so, and brings its schema up to date. Errors are *jobs.Error of kind ErrNoDatabase, ErrSchema, ErrPermission,
// ErrBusy, ErrCorrupt or ErrInvalid; then nothing was changed.
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

// Path returns the absolute path of the file, symlinks resolved; for a database on a server, its address without the password.
func (d *DB) Path() string { return d.path }

// Address returns what Open opens this database by: for one on a server with its password.
func (d *DB) Address() string { return d.engine.Address() }

// Dir returns the directory of this host that holds what belongs to the database, such as result files: PATH.d beside a file.
func (d *DB) Dir() string { return d.engine.Dir() }

// MakeDir makes Dir if it is missing: it comes with the file, but a copy of the file may have been made without it.
func (d *DB) MakeDir() error { return d.engine.MakeDir() }

// Created reports whether this Open made the database.
func (d *DB) Created() bool { return d.engine.Created() }

// Prefix returns what the names of our tables begin with: empty in a file of our own, a schema with its dot on a server.
func (d *DB) Prefix() string { return d.sql.Prefix }

// Server describes the server; nil for a file.
func (d *DB) Server() *ServerInfo { return d.engine.Server() }

// Close waits for the writes under way, refuses later ones with ErrClosed, and closes the database. It is safe to call twice.
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

// explain turns an error of the driver into one that a person can act on. Other errors and nil pass.
func (d *DB) explain(err error) error { return d.engine.Explain(err) }

// Replaced returns an error of kind ErrReplaced when the path no longer leads to the file that this process has open, or when somebody has
// overwritten the file.
func (d *DB) Replaced() error { return d.engine.Replaced() }

// BusyRetries returns how often writes found the file locked by others, and tried again.
func (d *DB) BusyRetries() int64 { return d.engine.BusyRetries() }

// Size returns the bytes of the file and of its write-ahead log; on a server those of our tables, and 0.
func (d *DB) Size() (file, wal int64) { return d.engine.Size() }

// Space returns an error of kind ErrFull if the disk has no space for another task. A server tells of that itself.
func (d *DB) Space() error { return d.engine.Space() }

// Backup writes a copy of the database to the file to, which appears complete or not at all, mode 0600 and on the disk. A file that
// is there is an error of kind ErrConflict unless replace, and one that is a database in use always. It returns the bytes of the copy.
func (d *DB) Backup(ctx context.Context, to string, replace bool) (int64, error) {
	return d.engine.Backup(ctx, to, replace)
}

// BackupFile writes a copy of the database into a new file of the directory beside it, for whoever hands it on, and returns its path.
func (d *DB) BackupFile(ctx context.Context) (string, error) { return d.engine.BackupFile(ctx) }

// Watch calls told when another connection has committed; several commits may be one call, and one for this process's own commits is
// possible. wakeups reports that there may be something for workers: on a server it is known of some commits that they only end
// tasks, or claim them, and of a file that the writer of this DB has made them. told must not wait. A brief watch costs more, and
// tells up to 20 ms later, but is begun and ended at once. The watching ends with ctx.
func (d *DB) Watch(ctx context.Context, brief bool, told func(wakeups bool)) error {
	return d.engine.Watch(ctx, brief, told)
}

// WatchSlowly sets the pace of the watch: with true it looks every 20 ms at most, else as soon as it can.
func (d *DB) WatchSlowly(slowly bool) { d.engine.WatchSlowly(slowly) }

// Revisions begins to look for commits. Close it. Unlike Watch it costs nothing between two questions, however much is written.
func (d *DB) Revisions(ctx context.Context) (Revisions, error) { return d.engine.Revisions(ctx) }

// CheckNotifications returns nil when a notification of this process has come back to it from the server, and an error of kind
// ErrInvalid when none came for so long. Files need no notifications.
func (d *DB) CheckNotifications(ctx context.Context, patience time.Duration) error {
	return d.engine.CheckNotifications(ctx, patience)
}
