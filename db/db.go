package db

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"
)

// Options of Open. The zero Options opens a file that exists, for reading and writing.
type Options struct {
	Create      bool          // make the file when there is none
	ReadOnly    bool          // refuse every write, and a schema that would have to be upgraded first
	Normal      bool          // leave out every fsync of a commit: a power cut may undo the last writes, a crash of a program none
	UnsafeFS    bool          // accept a network filesystem, on which locks cannot be trusted
	Beside      bool          // the file may be of another program: our tables are beside its own, with a prefix
	Prefix      string        // with Beside: that prefix. Defaults to the one in the file, or to DefaultPrefix
	BusyTimeout time.Duration // how long a write waits for other processes' locks. Defaults to 5 s
	Driver      string        // of database/sql, for the connection that writes: it wraps the one of modernc.org/sqlite. Defaults to that
}

// DB is an open database. It is safe for use by many goroutines.
type DB struct {
	path    string
	id      fileID
	log     atomic.Pointer[fileID] // of the write-ahead log; nil: there is none
	options Options
	created bool

	write *sqlx.DB // one connection, owned by the writer
	read  *sqlx.DB // query_only, opened when first used
	writer

	names  *names       // with the prefix of our tables; nil: they have none
	lastTx atomic.Value // weak.Pointer[sql.Tx]: of the caller's that was last seen to be of this file

	watches     sync.WaitGroup
	busyRetries atomic.Int64
	quit        chan struct{} // closed by Close: ends the watches
	closing     sync.Once
}

// Open opens the database file at path, creating it if the options say so, and brings its schema up to date. Errors are
// *jobs.Problem of kind ErrNoDatabase, ErrSchema, ErrPermission, ErrBusy, ErrCorrupt or ErrInvalid; then nothing was changed.
func Open(ctx context.Context, path string, options Options) (*DB, error) {
	if options.BusyTimeout == 0 {
		options.BusyTimeout = 5 * time.Second
	}
	path, err := resolve(path)
	if err != nil {
		return nil, err
	}
	d := &DB{path: path, options: options, quit: make(chan struct{})}
	if err := d.open(ctx); err != nil {
		if d.conn != nil {
			d.conn.Close() // a pool does not close a connection that is in use
		}
		_ = d.closePools()
		return nil, err
	}
	d.writer.start(d)
	return d, nil
}

// Path returns the absolute path of the file, symlinks resolved.
func (d *DB) Path() string { return d.path }

// Dir returns the directory beside the file that holds what belongs to it, such as result files: PATH.d.
func (d *DB) Dir() string { return d.path + ".d" }

// MakeDir makes Dir if it is missing: it comes with the file, but a copy of the file may have been made without it.
func (d *DB) MakeDir() error {
	if err := os.Mkdir(d.Dir(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return fileProblem(err, d.Dir())
	}
	return nil
}

// Created says whether this Open made the file.
func (d *DB) Created() bool { return d.created }

// Close waits for the writes under way, refuses later ones with ErrClosed, and closes the file. It is safe to call twice.
func (d *DB) Close() error {
	var err error
	d.closing.Do(func() {
		close(d.quit)
		d.watches.Wait()
		d.writer.stop()
		err = d.closePools()
	})
	return err
}

func (d *DB) closePools() error {
	var errs []error
	for _, pool := range []*sqlx.DB{d.read, d.write} { // the writer last: it leaves the file tidy
		if pool != nil {
			errs = append(errs, pool.Close())
		}
	}
	return errors.Join(errs...)
}

// BusyRetries returns how often writes found the file locked by others, and tried again.
func (d *DB) BusyRetries() int64 { return d.busyRetries.Load() }

// Size returns the bytes of the file and of its write-ahead log.
func (d *DB) Size() (file, wal int64) {
	if info, err := os.Stat(d.path); err == nil {
		file = info.Size()
	}
	if info, err := os.Stat(d.path + "-wal"); err == nil {
		wal = info.Size()
	}
	return file, wal
}
