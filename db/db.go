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

	"example.com/runner/db/internal/postgres"
	"example.com/runner/db/internal/sqltext"
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
	Engine      *Engine       `json:"-"` // for a database on a server: how to reach it
	Dir         string        // for a database on a server: where this host keeps what belongs to it. Defaults to the user's state directory
	Driver      string        // of database/sql, for the connection that writes: it wraps the one of modernc.org/sqlite. Defaults to that
}

// DB is an open database. It is safe for use by many goroutines.
type DB struct {
	path   string  // of the file; on a server its name, for people
	server *server // nil: the database is a file
	id     fileID

	logPath, sharedPath string // of the files beside it

	found   int64                      // bytes of the log before it was opened
	beside  atomic.Pointer[companions] // nil: not open in WAL mode yet
	options Options
	created bool

	content   atomic.Pointer[content] // nil: unknown
	contentMu sync.Mutex
	shared    *sharedMemory // guarded by contentMu; nil: it cannot be read
	queue     lockQueue     // of the processes that wait for the write lock
	commits   commitCount   // read by the watch

	write *sqlx.DB // one connection, owned by the writer; on a server one more, for claims
	read  *sqlx.DB // query_only, opened when first used
	writer
	claims writer // on a server: of plain claims, with a connection of its own that is opened when first used

	sql    *sqltext.Dialect // renders statements
	lastTx atomic.Value     // weak.Pointer[sql.Tx]: of the caller's that was last seen to be of this file

	watches     sync.WaitGroup
	slowly      atomic.Bool   // the watch looks at the slow pace
	hurry       chan struct{} // ends a pause of the slow pace
	busyRetries atomic.Int64
	quit        chan struct{} // closed by Close: ends the watches
	closing     sync.Once
}

// Open opens the database file at path, creating it if the options say so, and brings its schema up to date. Errors are
// *jobs.Error of kind ErrNoDatabase, ErrSchema, ErrPermission, ErrBusy, ErrCorrupt or ErrInvalid; then nothing was changed.
func Open(ctx context.Context, path string, options Options) (*DB, error) {
	if options.BusyTimeout == 0 {
		options.BusyTimeout = 5 * time.Second
	}
	d := &DB{options: options, quit: make(chan struct{}), hurry: make(chan struct{}, 1)}
	open, err := d.open, error(nil)
	if OnServer(path) {
		if d.server, err = newServer(path, options); err == nil {
			open, d.path = d.openServer, d.server.Name
			d.sql = postgres.Dialect(d.server.Schema)
			d.server.noticer.start()
		}
	} else {
		d.path, err = resolve(path)
		d.logPath, d.sharedPath = d.path+"-wal", d.path+"-shm"
	}
	if err != nil {
		return nil, err
	}
	if err := open(ctx); err != nil {
		if d.conn != nil {
			d.conn.Close() // a pool does not close a connection that is in use
		}
		_ = d.closePools()
		return nil, err
	}
	d.writer.start(d)
	d.claims.start(d)
	d.claims.broken = true
	return d, nil
}

// Path returns the absolute path of the file, symlinks resolved; for a database on a server, its address without the password.
func (d *DB) Path() string { return d.path }

// Address returns what Open opens this database by: for one on a server with its password.
func (d *DB) Address() string {
	if d.server != nil {
		return d.server.address
	}
	return d.path
}

// Dir returns the directory of this host that holds what belongs to the database, such as result files: PATH.d beside a file.
func (d *DB) Dir() string {
	if d.server != nil {
		return d.server.dir
	}
	return d.path + ".d"
}

// MakeDir makes Dir if it is missing: it comes with the file, but a copy of the file may have been made without it.
func (d *DB) MakeDir() error {
	mkdir := os.Mkdir
	if d.server != nil {
		mkdir = os.MkdirAll
	}
	if err := mkdir(d.Dir(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
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
		d.claims.stop()
		if d.Replaced() != nil {
			defer d.keepLog()()
		}
		d.writer.stop()
		if d.server != nil {
			d.server.noticer.stop()
		}
		err = d.closePools()
	})
	return err
}

func (d *DB) closePools() error {
	d.forgetContent()
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

// Size returns the bytes of the file and of its write-ahead log; on a server those of our tables, and 0.
func (d *DB) Size() (file, wal int64) {
	if d.server != nil {
		_ = d.read.Get(&file, d.sql.Text(serverSize), d.server.Schema) // 0: it cannot be told now
		return file, 0
	}
	if info, err := os.Stat(d.path); err == nil {
		file = info.Size()
	}
	if info, err := os.Stat(d.path + "-wal"); err == nil {
		wal = info.Size()
	}
	return file, wal
}
