package sqlite

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jmoiron/sqlx"

	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/sqltext"
	"example.com/runner/db/schema"
	"example.com/runner/jobs"
)

var _ engine.Engine = (*File)(nil)

// File is a database in an SQLite file. It implements engine.Engine.
type File struct {
	path string // absolute, symlinks resolved
	id   fileID

	logPath, sharedPath string // of the files beside it

	found   int64                      // bytes of the log before it was opened
	beside  atomic.Pointer[companions] // nil while the file is not open in WAL mode
	options engine.Options
	created bool
	single  bool // whether the present write is a single one; see lockQueue

	content   atomic.Pointer[content] // nil if unknown
	contentMu sync.Mutex
	shared    *sharedMemory // guarded by contentMu; nil if it cannot be read
	queue     lockQueue     // of the processes that wait for the write lock
	commits   commitCount   // read by the watch

	conn  *sqlx.Conn // of the writer, as it was opened last
	write *sqlx.DB   // one connection
	read  *sqlx.DB   // query_only
	sql   *sqltext.Dialect

	watches     sync.WaitGroup
	slowly      atomic.Bool   // the watch looks at the slow pace
	hurry       chan struct{} // ends a pause of the slow pace
	busyRetries atomic.Int64
	quit        chan struct{} // closed by Quit: ends the watches
}

// New prepares a database in the file at path; nothing is opened.
func New(path string, o engine.Options) (*File, error) {
	path, err := Resolve(path)
	if err != nil {
		return nil, err
	}
	return &File{path: path, logPath: path + "-wal", sharedPath: path + "-shm", options: o, quit: make(chan struct{}),
		hurry: make(chan struct{}, 1)}, nil
}

// Name returns the absolute path of the file, symlinks resolved.
func (d *File) Name() string { return d.path }

// Address returns the path.
func (d *File) Address() string { return d.path }

// Identity returns the path.
func (d *File) Identity() string { return d.path }

// Dir returns the directory beside the file.
func (d *File) Dir() string { return d.path + ".d" }

// MakeDir makes that directory if it is missing: it comes with the file, but a copy of the file may have been made without it.
func (d *File) MakeDir() error {
	if err := os.Mkdir(d.Dir(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return engine.FileError(err, d.Dir())
	}
	return nil
}

// Created reports whether Open made the file.
func (d *File) Created() bool { return d.created }

// Server returns nil: there is none.
func (*File) Server() *engine.ServerInfo { return nil }

// Reader returns the pool of connections that cannot write.
func (d *File) Reader() *sqlx.DB { return d.read }

// Dialect renders statements.
func (d *File) Dialect() *sqltext.Dialect { return d.sql }

// Traits are those of a file.
func (*File) Traits() engine.Traits {
	return engine.Traits{InsertMost: 16, SingleStatements: true}
}

// ClaimJob returns the tasks of a job as they are.
func (*File) ClaimJob(tasks string, i, n int) string { return ClaimJob(tasks, i, n) }

// Values returns the arguments as they are.
func (*File) Values(args []any) []any { return args }

// selectMain names the file of the main database of a connection.
var selectMain = sqltext.Query(`SELECT file FROM pragma_database_list WHERE name = 'main'`)

// Within returns an error unless a transaction of the caller's is of this file.
func (d *File) Within(q engine.Querier) error {
	var file string
	if err := q.Scan(selectMain, nil, &file); err != nil {
		return d.Explain(err)
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
			d.conn.Close() // a pool does not close a connection that is in use
		}
		return nil, err
	}
	return d.conn, nil
}

// Disconnecting lets the shared memory go: with the last connection SQLite does so, and nobody may use it any more.
func (d *File) Disconnecting() { d.forgetContent() }

// Reconnect opens the file anew: what the system could not read or write once may be fine for a new descriptor.
func (d *File) Reconnect(ctx context.Context, _ bool) (*sqlx.Conn, error) {
	d.beside.Store(nil) // they go with the last connection, and come with the next
	if err := d.write.Close(); err != nil {
		return nil, d.Explain(err)
	}
	d.conn = nil
	have, _, err := d.connectWriter(ctx)
	if err == nil && have != schema.Version(schema.SQLite) {
		err = &jobs.Error{Kind: jobs.ErrReplaced, What: "database was replaced: " + d.path, Why: []string{"its schema has changed"}}
	}
	if err == nil {
		err = d.knowFiles()
	}
	if err != nil && d.conn != nil {
		d.conn.Close()
	}
	if err != nil {
		return nil, err
	}
	return d.conn, nil
}

// Quit ends the watches.
func (d *File) Quit() {
	close(d.quit)
	d.watches.Wait()
}

// BeforeClose keeps the log of a file that was replaced.
func (d *File) BeforeClose() (release func()) {
	if d.Replaced() != nil {
		return d.keepLog()
	}
	return func() {}
}

// Close closes the pools.
func (d *File) Close() error {
	d.forgetContent()
	var errs []error
	for _, pool := range []*sqlx.DB{d.read, d.write} { // the writer last: it leaves the file tidy
		if pool != nil {
			errs = append(errs, pool.Close())
		}
	}
	return errors.Join(errs...)
}

// Begin waits for the write lock of the file, and starts a transaction.
func (d *File) Begin(_ *sqlx.Conn, _, single bool, begin func() error) (waited bool, err error) {
	d.single = single
	tries := 0
	err = d.retryBusy(func() error {
		tries++
		return begin()
	})
	if err == nil {
		d.queue.enter()
	}
	return tries > 1, err
}

// Later is not for files: a statement that is sent at once costs no more.
func (*File) Later(*sqlx.Conn, string, []any) error { return errors.ErrUnsupported }

// CommitWithNext returns false: a COMMIT of its own costs no more.
func (*File) CommitWithNext(*sqlx.Conn) bool { return false }

// SetLevel sends the pragma as text: a prepared one acts once only, when it is prepared.
func (*File) SetLevel(ctx context.Context, conn *sqlx.Conn, durable bool) error {
	text := "PRAGMA synchronous = NORMAL"
	if durable {
		text = "PRAGMA synchronous = FULL"
	}
	_, err := conn.ExecContext(ctx, text)
	return err
}

// CommitBegins counts a commit of the writer before it is made.
func (d *File) CommitBegins() { d.commits.begin() }

// CommitEnds follows CommitBegins.
func (d *File) CommitEnds(failed bool) { d.commits.end(failed) }

// Commits returns the number of all commits, and of those of other connections; false if it cannot tell.
func (d *File) Commits() (all, others uint32, ok bool) { return d.commits.read() }

// Queued reports whether a process has the lock and lets others wait in the queue. ok is false if there is no queue.
func (d *File) Queued() (held, ok bool) {
	d.queue.mu.Lock()
	defer d.queue.mu.Unlock()
	return d.queue.word != nil && d.queue.word.Load()%2 != 0, d.queue.word != nil
}

// Notify does nothing: other processes watch the file.
func (*File) Notify(bool) {}

// Awaited reports whether a process with a single write waits for the lock.
func (d *File) Awaited() bool { return d.queue.isAwaited() }

// Rest leaves the lock to other processes.
func (d *File) Rest(pause time.Duration) {
	if d.queue.leave() {
		d.queue.pass(pause)
	} else if othersOpen(d.sharedPath) {
		time.Sleep(pause)
	}
}

// Leave ends a stretch of writing.
func (d *File) Leave(now bool, pause time.Duration) {
	if now || d.queue.isAwaited() {
		d.queue.leave()
	} else {
		d.queue.leaveAfter(pause)
	}
}

// Space returns an error of kind ErrFull if the disk has no space for another task.
func (d *File) Space() error {
	free, total := space(filepath.Dir(d.path))
	return lacksRoom(free, total, d.path)
}

// Explain turns an error of the driver into one that a person can act on.
func (d *File) Explain(err error) error { return explain(err, d.path) }

// ExplainWrite is Explain for an error of the writer. That the file was replaced explains more than what SQLite met there.
func (d *File) ExplainWrite(err error) error {
	if isDamage(err) {
		err = cmp.Or(d.Replaced(), err)
	}
	return explain(err, d.path)
}

// Busy reports whether others had the lock.
func (*File) Busy(err error) bool { return isBusy(err) }

// Broken reports whether the connection must be opened anew.
func (*File) Broken(err error) bool { return isDamage(err) }

// BeginFailed returns nil: Begin has told of it.
func (*File) BeginFailed(error) error { return nil }

// Unanswered returns err: the answer of a commit is never lost.
func (*File) Unanswered(err error) error { return err }

// Refused reports whether a constraint or a trigger refused a write.
func (*File) Refused(err error) bool { return isRefused(err) }

// Asserted returns false: no statement for files asserts anything.
func (*File) Asserted(error) bool { return false }

// BusyRetries returns how often writes found the file locked by others, and tried again.
func (d *File) BusyRetries() int64 { return d.busyRetries.Load() }

// Size returns the bytes of the file and of its write-ahead log.
func (d *File) Size() (file, wal int64) {
	if info, err := os.Stat(d.path); err == nil {
		file = info.Size()
	}
	if info, err := os.Stat(d.logPath); err == nil {
		wal = info.Size()
	}
	return file, wal
}

// quickCheck reads every page and finds damage. fullCheck also compares indexes with their tables, and takes several times as long.
// Both list up to ten problems, or one row "ok".
const (
	quickCheck = `PRAGMA quick_check(10)`
	fullCheck  = `PRAGMA integrity_check(10)`
)

// Integrity returns what is wrong with the file itself; nil if nothing is. It reads all of it.
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

// Readers lists the processes that read the file at this moment and keep its log from starting afresh, where the system tells.
func (d *File) Readers() []engine.Process { return readers(d.sharedPath) }

// selectPages returns how many pages the file has, and how many of them are free; none in a file that cannot give them back.
const selectPages = `SELECT page_count, iif(auto_vacuum = 2, freelist_count, 0) FROM pragma_page_count,
	pragma_freelist_count, pragma_auto_vacuum`

// vacuumPages gives up to 256 free pages, 1 MiB, back to the filesystem. Each row that it returns is one page.
const vacuumPages = `PRAGMA incremental_vacuum(256)`

// Vacuum gives some free pages back to the filesystem. It keeps a twentieth of the file, and 1 MiB, for what comes next. The file
// shrinks with the next checkpoint.
func (d *File) Vacuum(ctx context.Context, conn *sqlx.Conn) (more bool, err error) {
	var pages, free int64
	if err := conn.QueryRowxContext(ctx, selectPages).Scan(&pages, &free); err != nil || free <= pages/20+256 {
		return false, err
	}
	rows, err := conn.QueryContext(ctx, vacuumPages) // Exec would take one step, which is one page
	if err != nil {
		return true, err
	}
	defer rows.Close()
	for rows.Next() {
	}
	return true, rows.Err()
}

// CheckNotifications returns nil: files need no notifications.
func (*File) CheckNotifications(context.Context, time.Duration) error { return nil }

// revisions reads the data version of a connection of its own.
type revisions struct {
	file *File
	pool *sqlx.DB
	conn *sqlx.Conn
}

// Revisions opens a connection for looking.
func (d *File) Revisions(ctx context.Context) (engine.Revisions, error) {
	pool, err := Connect(d.path, "rw", "busy_timeout(5000)", "query_only(1)")
	if err != nil {
		return nil, err
	}
	conn, err := pool.Connx(ctx)
	if err != nil {
		pool.Close()
		return nil, d.Explain(err)
	}
	return &revisions{d, pool, conn}, nil
}

func (r *revisions) Now(ctx context.Context) (n int64, err error) {
	err = r.conn.QueryRowxContext(ctx, dataVersion).Scan(&n)
	return n, r.file.Explain(err)
}

func (r *revisions) Close() {
	r.conn.Close()
	r.pool.Close()
}
