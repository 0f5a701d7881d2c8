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
	"example.com/runner/jobs"
)

// These are the types of the engines that callers of this package use.
type (
	// Address is the parsed path or address of a database, which need not
	// exist.
	Address = engine.Address
	// Options are the options of Open.
	Options = engine.Options
	// Engine connects to database servers. Package db/pgdriver has one.
	Engine = engine.Driver
	// Server connects to one database on a server.
	Server = engine.Connectors
	// ServerInfo describes the server that a database is on.
	ServerInfo = engine.ServerInfo
	// Process is a process of this machine.
	Process = engine.Process
	// Disk describes the filesystem that a database is on.
	Disk = sqlite.Disk
)

// DefaultPrefix is the default prefix of the names of runner's tables in a
// database of another program.
const DefaultPrefix = sqlite.DefaultPrefix

// ParseAddress parses the path of a file, or the address of a database on a
// server.
func ParseAddress(text string) Address {
	if postgres.IsURL(text) {
		return postgres.ParseURL(text)
	}
	return sqlite.Path(text)
}

// EngineVersion returns the version of SQLite that is linked in, as in
// "3.54.1".
func EngineVersion() string { return sqlite.Version() }

// RunnerVersion is the version of the library and of the program.
const RunnerVersion = "0.1.0"

// SchemaVersion returns the version of the schema of files that this program
// writes.
func SchemaVersion() int { return schema.Version(schema.SQLite) }

// DiskOf describes the filesystem of the database at path, which need not
// exist.
func DiskOf(path string) Disk { return sqlite.DiskOf(path) }

// ValidPrefix returns an error unless prefix is valid: a letter or underscore,
// then at most 31 letters, digits or underscores.
func ValidPrefix(prefix string) error { return sqlite.ValidPrefix(prefix) }

// DB is an open database. It is safe for use by many goroutines.
type DB struct {
	engine.Shared // methods of the engine that callers of this package use
	engine        engine.Engine
	traits        engine.Traits
	path          string           // name of the database for messages
	sql           *sqltext.Dialect // renders statements
	read          *sqlx.DB         // connections that cannot write
	options       Options

	writer
	claims writer // writer of the claims that fastpath.go describes; it has its own connection, which its first claim opens

	// The last transaction of an application that was found to be in this
	// database. Later calls in this transaction skip the check.
	lastTx  atomic.Pointer[outerTx]
	closing sync.Once

	roomAt     atomic.Pointer[time.Time] // time of the last check that found enough disk space; see checkSpace
	measuredAt atomic.Pointer[time.Time] // time of the last check that found the file within Options.MaxBytes; see makeRoom

	notices

	// Fenced counts the results and heartbeats of this process that the
	// database refused, because a newer attempt owned the task.
	Fenced atomic.Int64

	watching sync.RWMutex // held while a watch begins, so that Close waits for all of them
	quit     bool
}

// Open opens the database file at path, or the database on a server if path is
// its address. It creates the database if the options say so, and upgrades its
// schema. Errors are *jobs.Error of kind ErrNoDatabase, ErrSchema,
// ErrPermission, ErrBusy, ErrCorrupt or ErrInvalid; after one nothing has
// changed.
func Open(ctx context.Context, path string, options Options) (*DB, error) {
	if options.BusyTimeout == 0 {
		options.BusyTimeout = 5 * time.Second
	}
	if adjust, ok := ctx.Value(adjustKey{}).(func(*Options)); ok {
		adjust(&options)
	}

	if options.MaxBytes > 0 && !ParseAddress(path).LocalFile() {
		return nil, &jobs.Error{Kind: jobs.ErrInvalid, What: "option MaxBytes is for a file, and a server has no such bound",
			Hint: "a quota of the server's disk"}
	}

	d := &DB{options: options}
	var err error
	if d.engine, err = ParseAddress(path).Engine(options); err != nil {
		return nil, err
	}

	d.Shared, d.path, d.traits = d.engine, d.engine.Name(), d.engine.Traits()
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

// Path returns the absolute path of the file, with symlinks resolved. For a
// database on a server it returns the address without the password.
func (d *DB) Path() string { return d.path }

// Prefix returns the prefix of the names of runner's tables. It is empty in a
// file that belongs to runner alone, and is the name of the schema with a dot
// on a server.
func (d *DB) Prefix() string { return d.sql.Prefix }

// Engine returns the engine of the database, for packages in this folder.
func (d *DB) Engine() engine.Engine { return d.engine }

// UpdateAlone runs a write in a durable transaction of its own, for packages in
// this folder. The write must not run twice and may take long.
func (d *DB) UpdateAlone(ctx context.Context, run func(engine.Querier) error) error {
	return d.updateAlone(ctx, full, func(t *tx) error { return run(querier{t}) })
}

// Watch watches the database as the engine does. It returns ErrClosed after
// Close.
func (d *DB) Watch(ctx context.Context, every time.Duration, notify func(wakeups bool)) error {
	d.watching.RLock()
	defer d.watching.RUnlock()

	if d.quit {
		return jobs.ErrClosed
	}

	d.engine.Watch(ctx, every, notify)
	return nil
}

// Replaced returns an error of kind ErrReplaced if somebody has removed,
// replaced or emptied the files of the database. While Close runs and
// afterwards the error is ErrClosed, because Close itself may remove the
// write-ahead log.
func (d *DB) Replaced() error {
	err := d.engine.Replaced()
	if err != nil && d.IsClosed() {
		return jobs.ErrClosed
	}
	return err
}

// IsClosed reports whether Close was called.
func (d *DB) IsClosed() bool { return d.writer.stopped() }

// Close waits for the writes in progress, rejects later ones with ErrClosed,
// and closes the database. A second call does nothing.
func (d *DB) Close() error {
	var err error
	d.closing.Do(func() {
		d.watching.Lock()
		d.quit = true
		d.watching.Unlock()
		d.endWatch()

		d.engine.Quit()
		d.claims.stop()
		defer d.engine.BeforeClose()()

		d.writer.stop()
		err = d.engine.Close()
	})
	return err
}

// explain turns an error of the driver into a *jobs.Error. It returns nil and
// all other errors unchanged.
func (d *DB) explain(err error) error { return d.engine.Explain(err) }

// explainRead explains the error of a read, or the cause of ctx if ctx has
// ended.
func (d *DB) explainRead(ctx context.Context, err error) error { return d.explain(causeOf(ctx, err)) }

// causeOf prefers the cause of a ctx that has ended, because it says more than
// err.
func causeOf(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
