package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"github.com/jmoiron/sqlx"
	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/owner"
	"example.com/runner/db/schema"
	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// setDriver makes the driver strict about pragmas, once per process. It also
// enables OFD locks on the database file, where the system has them. Unlike
// POSIX locks, they stay when other code of the process opens and closes the
// file. The driver refuses if the program has locked a file through it before.
var setDriver = sync.OnceFunc(func() {
	_, _ = driver.OFDLocking(true)
	driver.StrictPragmas(true)
})

// Version returns the version of SQLite that is linked in, as in "3.54.1".
func Version() string { return sqlite3.SQLITE_VERSION }

// uri returns the data source name of the file at path with the settings of
// query. The path goes through url.URL, so that ?, # and % stay part of the
// name.
func uri(path string, query url.Values) string {
	if len(path) > 2 && path[1] == ':' { // C:\dir\file becomes /C:/dir/file
		path = "/" + strings.ReplaceAll(path, `\`, "/")
	}
	return (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: query.Encode()}).String()
}

const driverName = "sqlite"

// logLimit makes SQLite cut the WAL to 64 MiB whenever it begins the WAL anew.
const logLimit = "journal_size_limit(67108864)"

// pageCache lets a connection keep 8 MB of pages, for those that read or write
// much. SQLite parses the schema for this pragma, which takes 1 ms and 0.6 MB.
const pageCache = "cache_size(-8000)"

// Connect opens a pool of one connection to a file, with pragmas. mode is a
// mode of SQLite's URIs: rw, rwc or ro.
func Connect(path, mode string, pragmas ...string) (*sqlx.DB, error) {
	setDriver()
	return connectBy(driverName, path, mode, 1, pragmas...)
}

// connectBy does the same with any driver of database/sql and up to limit
// connections. Pragmas are part of the address: one that's sent with Exec
// reaches only one connection of a pool.
func connectBy(name, path, mode string, limit int, pragmas ...string) (*sqlx.DB, error) {
	pragmas = append(pragmas, "foreign_keys(1)", "trusted_schema(0)", "cell_size_check(1)")
	source := uri(path, url.Values{
		"mode":       {mode},
		"_txlock":    {"immediate"},
		"_defensive": {"1"},
		"_dqs":       {"0"},
		"_pragma":    pragmas,
	})
	named, err := sql.Open(name, source)
	if err != nil {
		return nil, err
	}

	named.Close() // it was only asked for its driver

	pool := sqlx.NewDb(sql.OpenDB(connector{named.Driver(), path, source}), name)
	pool.SetMaxOpenConns(limit)
	pool.SetMaxIdleConns(limit)
	return pool, nil
}

// connector opens the connections of a pool. A pool opens one whenever its
// others are in use, so each checks anew that it won't remove a log.
type connector struct {
	driver       sqldriver.Driver
	path, source string
}

// Driver returns the driver of the connections.
func (c connector) Driver() sqldriver.Driver { return c.driver }

// Connect opens a connection. The error is of kind ErrReplaced if the file was
// removed or emptied, and its log wasn't.
func (c connector) Connect(context.Context) (sqldriver.Conn, error) {
	if err := checkLeftLog(c.path); err != nil {
		return nil, err
	}
	return c.driver.Open(c.source)
}

// open finds or creates the file, checks that it is a database of runner, and
// sets the pools of d and the connection of the writer.
func (d *File) open(ctx context.Context) error {
	defer d.lockOpening()()

	if err := d.find(); err != nil {
		return err
	}

	have, prefix, err := d.connectWriter(ctx)
	if err != nil {
		return err
	}

	d.sql = Dialect(prefix)
	if d.read, err = connectBy(driverName, d.path, "rw", 4, "busy_timeout(5000)", "query_only(1)", pageCache); err != nil {
		return err
	}

	switch {
	case have == schema.Version(schema.SQLite):
		err = d.checkColumns(ctx)
	case have == 0 && !d.options.Create && prefix != "":
		err = &jobs.Error{Kind: jobs.ErrSchema, What: d.path + " has no tables of runner yet",
			Why: []string{"they are not made by this call"}}
	case have == 0 && !d.options.Create:
		err = &jobs.Error{Kind: jobs.ErrSchema, Code: errcode.EmptyFile, Subject: d.path,
			What: d.path + " is not a runner database", Why: []string{"it is empty"}}
	case d.options.ReadOnly:
		err = engine.NotUpgraded(d.path)
	default:
		d.upgradedFrom = have
		err = d.initialise(ctx)
	}

	if err != nil {
		return err
	}

	return d.recordFiles()
}

// With Options.Flash, a new file has pages of 1 KiB in place of 4 KiB. Each
// commit writes whole pages to the WAL, so smaller pages write less: 4.9 KB for
// each task with pages of 512 bytes, 6.5 KB with 1024, 9.6 KB with 2048 and
// 16.1 KB with 4096, at one task per second (BenchmarkBytesWritten). Below 1
// KiB a large value would be spread over too many pages. A checkpoint starts
// after four times as many pages, so the WAL grows to the same size.
const (
	flashPageSize   = "PRAGMA page_size = 1024"
	flashCheckpoint = "wal_autocheckpoint(4000)"
)

// connectWriter opens the connection of the writer, and returns the version of
// the schema and the prefix of its names. It tries again while another process
// creates the database, because the file is then locked for every pragma.
func (d *File) connectWriter(ctx context.Context) (have int, prefix string, err error) {
	level := "synchronous(FULL)"
	if d.options.Normal {
		level = "synchronous(NORMAL)"
	}

	pragmas := []string{
		"busy_timeout(0)", // SQLite's handler might never get the lock beside a busy process; see retryBusy
		level,
		logLimit,
		pageCache,
		"temp_store(MEMORY)", // the journal of a statement: by default a file in /tmp from 64 KiB on, as for a claim of 100 tasks
	}
	if d.options.Flash > 0 {
		pragmas = append(pragmas, flashCheckpoint)
	}
	if d.options.ReadOnly {
		pragmas = append(pragmas, "query_only(1)")
	}
	if d.write, err = connectBy(cmp.Or(d.options.Driver, driverName), d.path, "rw", 1, pragmas...); err != nil {
		return 0, "", err
	}

	err = d.retryBusy(func() (err error) {
		if d.conn == nil {
			if d.conn, err = d.write.Connx(ctx); err != nil {
				return d.Explain(err)
			}
		}
		have, prefix, err = d.version(ctx)
		return err
	})
	return have, prefix, err
}

// initialise creates the schema in an empty file, or upgrades an old schema.
func (d *File) initialise(ctx context.Context) error {
	return d.initialiseAlone(ctx, func() error {
		have, _, err := d.version(ctx)
		if err != nil || have == schema.Version(schema.SQLite) {
			return err
		}
		if have == 0 {
			if err := d.walMode(ctx, d.conn); err != nil {
				return err
			}
		}
		return d.migrate(ctx)
	})
}

// initialiseAlone calls do, and calls it again while other connections lock the
// file. The switch to WAL mode ignores SQLite's busy handler, so a lock file
// lets only one process at a time do it: without that, 1 of 96 processes
// failed, of which eight at a time opened a new file.
func (d *File) initialiseAlone(ctx context.Context, do func() error) error {
	if err := cmp.Or(d.MakeDir(), d.checkDir(false), d.checkBeside()); err != nil {
		return err
	}

	lock := flock.New(d.initLock(), flock.SetPermissions(0o600), flock.SetFlag(os.O_CREATE|os.O_RDONLY|owner.NoFollow|owner.NoBlock))
	defer lock.Close()

	ok, err := lock.TryLock() // takes a free lock however short the busy timeout is
	if !ok && err == nil {
		waiting, cancel := context.WithTimeout(ctx, d.options.BusyTimeout)
		defer cancel()
		ok, err = lock.TryLockContext(waiting, 5*time.Millisecond)
	}

	switch {
	case ok:
		return d.retryBusy(do)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, context.DeadlineExceeded):
		return &jobs.Error{Kind: jobs.ErrBusy, What: "database is busy: " + d.path, Hint: "again",
			Why: []string{"another process is creating or upgrading it"}, Err: err}
	}

	return engine.FileError(err, d.Dir())
}

// walMode switches the file to WAL mode. It also sets auto_vacuum in an empty
// file, so that the file can return free pages to the filesystem. A file of
// another program keeps its own auto_vacuum.
func (d *File) walMode(ctx context.Context, on engine.Connection) error {
	if d.options.Flash > 0 { // page_size has no effect on a file that has tables
		if _, err := on.ExecContext(ctx, flashPageSize); err != nil {
			return d.Explain(err)
		}
	}
	if _, err := on.ExecContext(ctx, "PRAGMA auto_vacuum = INCREMENTAL"); err != nil {
		return d.Explain(err)
	}

	var mode string
	if err := on.QueryRowxContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode); err != nil {
		return d.Explain(err)
	}
	if mode != "wal" {
		return &jobs.Error{Kind: jobs.ErrPermission, Code: errcode.NoWriteAheadLog, Subject: d.path, What: "cannot use " + d.path,
			Why:  []string{"this filesystem has no write-ahead log: journal_mode stays " + mode},
			Hint: "a path on a local disk"}
	}

	return nil
}

// retryBusy calls do, and calls it again while other connections lock the file,
// until the busy timeout has passed.
func (d *File) retryBusy(do func() error) error {
	inKernel := false
	err := d.repeat(do, isBusy, func(waited time.Duration) {
		d.busyRetries.Add(1)
		// Every other time only pause, because SQLite may be busy for another
		// reason, for which the kernel wakes nobody.
		inKernel = !inKernel
		if d.options.Alone || !inKernel || !awaitTurn(d.sharedPath, min(maxRound, d.options.BusyTimeout-waited)) {
			pauseBusy(waited)
		}
	})
	if isBusy(err) {
		return &jobs.Error{Kind: jobs.ErrBusy, Code: errcode.LockTimeout, Subject: d.path, What: "database is busy: " + d.path, Err: err,
			Why: []string{
				busyReason(d.options.BusyTimeout, lockHolder(d.sharedPath)),
				"nothing was written; it is safe to try again",
			}}
	}

	return err
}

// maxRound is the longest time that one try and the pause after it count as
// waiting, even if they took longer. Otherwise a write would fail after its
// process was stopped for a while or the machine slept.
const maxRound = 100 * time.Millisecond

// repeat calls do until it succeeds or its error isn't to be tried again, or
// the busy timeout has passed. It returns the last error.
func (d *File) repeat(do func() error, isTemporary func(error) bool, pause func(waited time.Duration)) error {
	waited := time.Duration(0)
	for {
		began := time.Now()
		err := do()
		if err == nil || !isTemporary(err) || waited >= d.options.BusyTimeout {
			return err
		}
		pause(waited)
		waited += min(time.Since(began), maxRound)
	}
}

// busyReason says why a write got no turn within the busy timeout. holder is
// the process that has the lock now, or zero if the system doesn't show it.
func busyReason(timeout time.Duration, holder engine.Process) string {
	switch holder.PID {
	case 0:
		return fmt.Sprintf("no turn to write in %v: other connections have the write lock", timeout)
	case os.Getpid():
		return fmt.Sprintf("a transaction of this program has held the write lock for %v; "+
			"to enqueue inside that transaction, use EnqueueTx", timeout)
	}
	return fmt.Sprintf("no turn to write in %v: another process has the write lock (pid %d, %q)", timeout, holder.PID, holder.Name)
}

// maxPause is longer than each of the first pauses. A busy writer now and then
// leaves the lock to others for at least as long, so a waiting process tries at
// least once during that time.
const maxPause = time.Millisecond

// pauseBusy waits before the next try to get the lock. The pause is random, so
// that many processes don't try at the same time, and up to ten times as long
// after a long wait: then probably many wait, and each try takes processor time
// from the process that has the lock.
func pauseBusy(waited time.Duration) {
	pause := maxPause*3/10 + rand.N(maxPause*4/10)
	time.Sleep(pause * time.Duration(1+min(int(waited/(200*time.Millisecond)), 9)))
}
