package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/sqltext"
	"example.com/runner/db/schema"
	"example.com/runner/jobs"
)

var _ engine.Engine = (*File)(nil)

// File is a database in an SQLite file. It implements engine.Engine.
type File struct {
	path                string // absolute, with symlinks resolved
	logPath, sharedPath string // of the WAL and of the shared memory
	options             engine.Options

	id            fileID
	companions    atomic.Pointer[[2]fileID] // of the files beside; nil while the file isn't open in WAL mode
	logSizeBefore int64                     // of the WAL before Open opened the file
	created       bool
	upgradedFrom  int // version of the schema before Open upgraded it; 0 if Open upgraded nothing

	conn  *sqlx.Conn // that the writer has opened last
	write *sqlx.DB   // one connection, for the writer
	read  *sqlx.DB   // connections that can't write (PRAGMA query_only)
	sql   *sqltext.Dialect

	logSync     logSync // delayed sync of the WAL
	busyRetries atomic.Int64

	watches     sync.WaitGroup
	slow        atomic.Bool   // whether the watches check at most every 20 ms; see WatchSlowly
	paceChanged chan struct{} // from WatchSlowly(false): ends the pause of a watch
	quit        chan struct{} // closed by Quit, which ends the watches
}

// New prepares a database in the file at path. It doesn't open the file.
func New(path string, o engine.Options) (*File, error) {
	path, err := Resolve(path)
	if err != nil {
		return nil, err
	}

	setDriver() // before the first connection: the checks of the files in use need OFD locks

	d := &File{
		path:        path,
		logPath:     path + "-wal",
		sharedPath:  path + "-shm",
		options:     o,
		paceChanged: make(chan struct{}, 1),
		quit:        make(chan struct{}),
	}
	d.logSync.delay, d.logSync.sync, d.logSync.durable = o.Flash, d.syncLog, !o.Normal
	return d, nil
}

// Name, Address and Identity return the absolute path of the file, symlinks
// resolved.

func (d *File) Name() string     { return d.path }
func (d *File) Address() string  { return d.path }
func (d *File) Identity() string { return d.path }

// Created reports whether Open made the file.
func (d *File) Created() bool { return d.created }

// UpgradedFrom implements engine.Shared.
func (d *File) UpgradedFrom() int { return d.upgradedFrom }

// Reader returns the pool of connections that can't write.
func (d *File) Reader() *sqlx.DB { return d.read }

// Dialect returns the dialect that renders statements.
func (d *File) Dialect() *sqltext.Dialect { return d.sql }

// Traits returns the properties of a database in a file.
func (*File) Traits() engine.Traits {
	return engine.Traits{InsertMost: 16, SingleStatements: true}
}

// selectMain returns the file of the main database of a connection.
var selectMain = sqltext.Query(`SELECT file FROM pragma_database_list WHERE name = 'main'`)

// Within returns an error if the caller's transaction belongs to another file
// or driver. There's nothing to prepare: the transaction's first write takes
// the write lock, and workers watch the file for commits.
func (d *File) Within(q engine.Querier, _ engine.Use) error {
	var file, build string
	if err := q.Scan(selectOuter, nil, &file, &build); err != nil {
		if isForeign(err) {
			return otherDriver("the transaction", err)
		}
		return d.Explain(err)
	}
	if own, err := ownBuild(); err != nil {
		return d.Explain(err)
	} else if build != own {
		return otherDriver("the transaction", nil)
	}
	if real, err := Resolve(file); file != d.path && (err != nil || real != d.path) {
		return &jobs.Error{Kind: jobs.ErrInvalid, What: fmt.Sprintf("the transaction is of another database: %q", file),
			Why: []string{"this one is " + d.path}, Hint: "begin it on a handle that was opened with this path"}
	}

	return nil
}

// Open opens the file, and creates or upgrades it if the options say so.
func (d *File) Open(ctx context.Context) (*sqlx.Conn, error) {
	if err := d.open(ctx); err != nil {
		if d.conn != nil {
			d.conn.Close() // the caller closes only the pool, which doesn't close a connection in use
		}
		return nil, err
	}
	return d.conn, nil
}

// Reconnect opens the file again after an I/O error. The new descriptor may
// work although the old one failed.
func (d *File) Reconnect(ctx context.Context) (*sqlx.Conn, error) {
	d.companions.Store(nil) // SQLite removes these files at the last close, and the next open creates new ones
	if err := d.write.Close(); err != nil {
		return nil, d.Explain(err)
	}

	d.conn = nil
	have, _, err := d.connectWriter(ctx)
	if err == nil && have != schema.Version(schema.SQLite) {
		err = &jobs.Error{Kind: jobs.ErrReplaced, What: "database was replaced: " + d.path, Why: []string{"its schema has changed"}}
	}
	if err == nil {
		err = d.recordFiles()
	}
	if err == nil {
		return d.conn, nil
	}
	if d.conn != nil {
		d.conn.Close()
	}

	return nil, err
}

// Quit ends the watches.
func (d *File) Quit() {
	close(d.quit)
	d.watches.Wait()
}

// BeforeClose keeps SQLite from removing the WAL of a replaced file; see
// keepLog.
func (d *File) BeforeClose() (release func()) {
	if d.Replaced() != nil {
		return d.keepLog()
	}
	return func() {}
}

// Close closes the pools.
func (d *File) Close() error {
	var errs []error
	for _, pool := range []*sqlx.DB{d.read, d.write} { // the writer last: its close runs a checkpoint and removes the WAL
		if pool != nil {
			errs = append(errs, pool.Close())
		}
	}

	closeTurns()
	return errors.Join(append(errs, d.logSync.close())...)
}

// Begin waits for the write lock of the file, and starts a transaction.
func (d *File) Begin(_ *sqlx.Conn, _ bool, begin func() error) (waited bool, err error) {
	tries := 0
	err = d.retryBusy(func() error {
		tries++
		return begin()
	})
	return tries > 1, err
}

// SetLevel sets whether the following commits survive a power failure. The
// pragma is no prepared statement: SQLite runs it when it prepares it, and not
// at each execution.
func (d *File) SetLevel(ctx context.Context, conn *sqlx.Conn, durable bool) error {
	d.logSync.setLevel(durable)
	text := "PRAGMA synchronous = NORMAL"
	if durable {
		text = "PRAGMA synchronous = FULL"
	}
	_, err := conn.ExecContext(ctx, text)
	return err
}

// Rest leaves the lock to other processes. It looks for them once (25 µs),
// since a busy writer asks again after some milliseconds.
func (d *File) Rest(pause time.Duration) {
	if d.othersSeen(1) {
		time.Sleep(pause)
	}
}

// Space returns an error of kind ErrFull if the disk has no space for another
// task.
func (d *File) Space() error {
	return space(filepath.Dir(d.path)).check(d.path)
}

// Explain turns an error of the driver into a *jobs.Error that explains it. If
// the file was replaced, the error says so, which explains more than that of
// SQLite.
func (d *File) Explain(err error) error {
	if isDamage(err) {
		err = cmp.Or(d.Replaced(), err)
	}
	failure, ok := errors.AsType[*driver.Error](err)
	// because of query_only, also if the file is writable
	if d.options.ReadOnly && ok && failure.Code() == sqlite3.SQLITE_READONLY {
		return engine.ErrReadOnly(d.path, err)
	}

	return explain(err, d.path)
}

// Busy, Broken and Refused implement engine.Errors.

func (*File) Busy(err error) bool    { return isBusy(err) }
func (*File) Broken(err error) bool  { return isDamage(err) }
func (*File) Refused(err error) bool { return code(err) == sqlite3.SQLITE_CONSTRAINT }

// These methods do nothing: only a server needs their work.

func (*File) Server() *engine.ServerInfo            { return nil }
func (*File) Values(args []any) []any               { return args }
func (*File) Later(*sqlx.Conn, string, []any) error { return errors.ErrUnsupported } // unused: Traits.Pipelines is false
func (*File) CommitWithNext(*sqlx.Conn) bool        { return false }
func (*File) Notify(bool)                           {}               // not needed: other processes watch the file
func (*File) BeginFailed(error) error               { return nil }   // Begin has already returned the error of BEGIN
func (*File) Unanswered(err error) error            { return err }   // the result of a commit is never lost
func (*File) Asserted(error) bool                   { return false } // only the fast path of a server has assertions

// BusyRetries implements engine.Shared.
func (d *File) BusyRetries() int64 { return d.busyRetries.Load() }

// Size implements engine.Shared.
func (d *File) Size() (file, wal int64) {
	if info, err := os.Stat(d.path); err == nil {
		file = info.Size()
	}
	if info, err := os.Stat(d.logPath); err == nil {
		wal = info.Size()
	}
	return file, wal
}

// selectUsed returns the number of bytes of the pages in use.
var selectUsed = sqltext.Query(`SELECT (page_count - freelist_count) * page_size FROM pragma_page_count, pragma_freelist_count,
	pragma_page_size`)

// Used implements engine.Shared.
func (*File) Used(q engine.Querier) (used int64, err error) {
	err = q.Scan(selectUsed, nil, &used)
	return used, err
}

// quickCheck reads every page and finds damage. fullCheck also compares indexes
// with their tables, and takes several times as long. Both return up to ten
// problems, or one row, ok.
const (
	quickCheck = `PRAGMA quick_check(10)`
	fullCheck  = `PRAGMA integrity_check(10)`
)

// Integrity implements engine.Shared.
func (d *File) Integrity(ctx context.Context, thorough bool) (found []string, err error) {
	check := quickCheck
	if thorough {
		check = fullCheck
	}
	err = d.read.SelectContext(ctx, &found, check)
	if len(found) == 1 && found[0] == "ok" {
		found = nil
	}
	return found, d.Explain(err)
}

// selectPages returns the numbers of the file's pages and of its free pages.
// The second one is 0 if the file can't return free pages to the filesystem.
const selectPages = `SELECT page_count, iif(auto_vacuum = 2, freelist_count, 0) FROM pragma_page_count,
	pragma_freelist_count, pragma_auto_vacuum`

// vacuumPages returns up to 256 free pages, usually 1 MiB, to the filesystem.
// It returns a row for each page.
const vacuumPages = `PRAGMA incremental_vacuum(256)`

// Vacuum returns some free pages to the filesystem. It keeps a twentieth of the
// file, plus 256 pages, for new rows. The file shrinks at the next checkpoint.
func (d *File) Vacuum(ctx context.Context, conn *sqlx.Conn) (more bool, err error) {
	var pages, free int64
	if err := conn.QueryRowxContext(ctx, selectPages).Scan(&pages, &free); err != nil || free <= pages/20+256 {
		return false, err
	}

	rows, err := conn.QueryContext(ctx, vacuumPages) // Exec would run one step of the pragma, which returns one page
	if err != nil {
		return true, err
	}
	defer rows.Close()

	for rows.Next() {
	}
	return true, rows.Err()
}
