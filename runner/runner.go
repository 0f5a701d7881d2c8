package runner

import (
	"context"
	"database/sql"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/access"
	"example.com/runner/jobs"
	"example.com/runner/runner/internal/exec"
	"example.com/runner/runner/internal/notify"
)

// Version is the version of this library and of the program built from it.
const Version = "0.1.0"

// Sync says how far a commit goes before a call returns.
type Sync int

// The levels of Sync.
const (
	Full   Sync = iota // enqueues and finishes are on the disk: they survive a power cut
	Normal             // no fsync for a commit: they survive the death of any process, a power cut may undo the last ones
)

// Options of Open. The zero Options is useful.
type Options struct {
	// MustExist makes Open fail with jobs.ErrNoDatabase rather than create the file. Defaults to false.
	MustExist bool
	// ReadOnly makes Open neither create nor upgrade the file, and every write fail. Defaults to false.
	ReadOnly bool
	// BusyTimeout is how long a write waits while other processes hold the file's lock. Defaults to 5 s.
	BusyTimeout time.Duration
	// UnsafeFS accepts a database on a network filesystem, where locks cannot be trusted. Defaults to false.
	UnsafeFS bool
	// Prefix makes the tables, indexes, views and triggers of runner have names that begin with it, beside those that the file may have
	// already: a letter or underscore, then at most 31 letters, digits or underscores. The file remembers it. Defaults to what the file
	// says; then for New to "runner_", and for Open, which refuses another program's file without it, to none.
	Prefix string
	// Sync says how far a commit goes. Defaults to Full.
	Sync Sync
	// Log receives what the engine does; attempts that fail are warnings. Defaults to none.
	Log *slog.Logger

	// Concurrency is how many attempts Work runs at once. Defaults to runtime.GOMAXPROCS(0).
	Concurrency int
	// Queues are the queues that Work serves, in turn. Defaults to all.
	Queues []QueueMax
	// MaxWait lets tasks that have been due for longer start first in their queue, whatever their priority. Defaults to off.
	MaxWait time.Duration
	// Grace is how long Work lets running attempts go on once its context has ended. Defaults to 30 s; negative: not at all.
	Grace time.Duration
	// Lease is how long a task stays this worker's without a heartbeat; heartbeats come every sixth of it. Below MinLease a busy
	// machine takes live workers for hung ones: that is for tests of what happens then. At least 100 ms. Defaults to 60 s.
	Lease time.Duration
	// Timeout limits attempts of commands that have no timeout of their own. Defaults to no limit.
	Timeout time.Duration
	// Name is what people read as the worker's name. Defaults to HOST:PID.
	Name string
	// Keep is how long Work keeps tasks that completed or were cancelled, KeepFailed how long those that failed, with their attempts
	// and output. Of several workers' the shortest counts. Default to 7 and 30 days; negative: for ever.
	Keep, KeepFailed time.Duration
	// OnFailure is a command that Work runs once for each task that became failed by its doing: best effort, for at most a minute, in
	// the environment of the task and RUNNER_TASK_STATE, _REASON and _ERROR, the last 50 lines of the task's output on its stdin. It
	// dies with the worker, so a program that sets it must call Guardian. Defaults to none.
	OnFailure []string
	// Liveness is called by the loop of Work after its first claim, when it begins to drain, and at least every LivenessEvery after it has been to the
	// database: for a watchdog. It must return at once. Defaults to none.
	Liveness func(Liveness)
	// LivenessEvery is the longest time between two calls of Liveness. Defaults to a sixth of Lease.
	LivenessEvery time.Duration
	// InsecurePerms lets Work run commands although others than its user may write the database: write access is command execution as its user. Defaults to false.
	InsecurePerms bool
	// ForeignTriggers lets Work use a database whose own tables somebody has added triggers or indexes to: they act in each write of a
	// worker. An application's tables, and its triggers on those, need no leave. Defaults to false.
	ForeignTriggers bool

	// GuardianPath names an installed program that begins with Guardian, such as runner itself, in the same version as this
	// package; it guards commands in place of this program. Defaults to this program, which must call Guardian.
	GuardianPath string
	// OwnProcess says that this process does nothing but this work. Work then makes it the keeper of processes that outlive
	// their parents, and lets commands read nothing of it. Defaults to false: Work leaves the process as it is. Linux only.
	OwnProcess bool

	// Alone says that no other process writes the file while it is open, so that nothing watches it: tasks that others enqueue are found
	// late. Programs on fake time need it, since a goroutine that waits for the system would stop their clock. Defaults to false.
	Alone bool
	// Inline makes Enqueue, Add and EnqueueAll run what is due before they return, unless Work runs it: for tests. EnqueueTx cannot, before
	// its commit. Defaults to false.
	Inline bool
	// Engine lets Open take the address of a PostgreSQL server, such as postgres://user@host/app: see package runner/postgres. What is documented
	// for the file does not hold there; docs/postgres.md says what does. Defaults to none.
	Engine Engine
	// Dir is where this host keeps what belongs to a database on a server: results on their way, locks by which the workers of one host know
	// each other alive. Each database has a directory of its own in it. Defaults to the user's state directory.
	Dir string
	// Driver is the name of a database/sql driver for the connection that writes; it must wrap the one of modernc.org/sqlite. Defaults to that.
	Driver string
}

// Engine connects to databases on a server. Function Engine of package runner/postgres returns one. The zero Engine connects to none.
type Engine struct{ driver *db.Engine }

const (
	// MinLease is the shortest Options.Lease that holds on a busy machine, and the shortest that runner work takes.
	MinLease = 5 * time.Second

	shortestLease = 100 * time.Millisecond
	defaultLease  = time.Minute
	defaultGrace  = 30 * time.Second

	defaultKeep       = 7 * 24 * time.Hour
	defaultKeepFailed = 30 * 24 * time.Hour
)

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Concurrency <= 0 {
		o.Concurrency = runtime.GOMAXPROCS(0)
	}
	if o.Grace == 0 {
		o.Grace = defaultGrace
	}
	if o.Lease == 0 {
		o.Lease = defaultLease
	}
	if o.LivenessEvery <= 0 {
		o.LivenessEvery = o.Lease / 6
	}
	if o.Keep == 0 {
		o.Keep = defaultKeep
	}
	if o.KeepFailed == 0 {
		o.KeepFailed = defaultKeepFailed
	}
	return o
}

// Runner is an open database and the jobs that this process can run. Its methods are safe for use by many goroutines.
type Runner struct {
	store      *db.DB
	options    Options
	log        *slog.Logger
	handlers   map[string]jobs.Handler
	middleware []Middleware
	notifier   *notify.Notifier
	events     events
	user       func() string

	mu     sync.Mutex
	abort  context.CancelFunc // of the Work under way; nil: none
	fenced atomic.Int64
}

// Open opens the database file at path (or, with Options.Engine, the database on a server that path is the address of), creating it unless the options say otherwise, and brings its schema up to date. The
// directory must exist. Errors are *jobs.Error of kind jobs.ErrNoDatabase, ErrSchema, ErrPermission, ErrBusy, ErrCorrupt or
// ErrInvalid; then nothing was changed.
func Open(ctx context.Context, path string, options Options) (*Runner, error) {
	return open(ctx, path, options, options.Prefix != "")
}

// New is Open for the file of the application's own database, which handle has open: runner's tables come beside the application's, with
// Options.Prefix before their names, and nothing else of the file is changed but this: it is kept in WAL mode from now on. Migrations
// touch runner's tables only; application_id and user_version stay the application's, and the version of runner's schema is in the
// table runner_schema. So `runner --db FILE` finds the tasks, whatever the prefix. A database that Open made is taken as it is.
//
// handle must be of the driver modernc.org/sqlite and of a file. It is asked for the file's name and not used after that: a Runner has
// connections of its own, so that neither waits for a connection of the other, and pragmas of one do not reach the other. It is
// the application's handle that transactions for EnqueueTx and FinishTx begin on. Close leaves it open.
//
// Beside the errors of Open it returns jobs.ErrConflict when the file has another table of such a name, and jobs.ErrInvalid for a
// handle or a prefix that cannot be.
func New(ctx context.Context, handle *sql.DB, options Options) (*Runner, error) {
	path, err := db.PathOf(ctx, handle)
	if err != nil {
		return nil, err
	}
	options.MustExist = false // it does
	return open(ctx, path, options, true)
}

func open(ctx context.Context, path string, options Options, beside bool) (*Runner, error) {
	options = options.withDefaults()
	if err := db.ValidPrefix(options.Prefix); err != nil {
		return nil, err
	}
	if options.Lease < shortestLease {
		return nil, &jobs.Error{Kind: jobs.ErrInvalid, What: "lease " + options.Lease.String() + " is too short", Hint: "at least 5s"}
	}
	store, err := db.Open(ctx, path, db.Options{Create: !options.MustExist && !options.ReadOnly, ReadOnly: options.ReadOnly, Normal: options.Sync == Normal,
		Beside: beside, Prefix: options.Prefix, UnsafeFS: options.UnsafeFS, BusyTimeout: options.BusyTimeout, Driver: options.Driver,
		Engine: options.Engine.driver, Dir: options.Dir})
	if err != nil {
		return nil, err
	}
	r := &Runner{store: store, options: options, log: options.Log, handlers: map[string]jobs.Handler{}, user: sync.OnceValue(userName)}
	r.notifier = notify.New(func(ctx context.Context, brief bool, changed func(forWorkers bool)) error {
		if options.Alone {
			return nil
		}
		return store.Watch(ctx, brief, changed)
	}, store.WatchSlowly)
	return r, nil
}

// Close closes the database. Work must have returned. It is safe to call twice.
func (r *Runner) Close() error {
	r.events.close()
	r.notifier.Close()
	return r.store.Close()
}

// Path returns the absolute path of the database file, symlinks resolved; of one on a server its address without the password.
func (r *Runner) Path() string { return r.store.Path() }

func init() {
	access.Store = func(r any) *db.DB { return r.(*Runner).store }
	access.HeadSize = exec.HeadSize
	access.NewEngine = func(driver *db.Engine) any { return Engine{driver} }
	access.Fenced = func(r any) int64 { return r.(*Runner).fenced.Load() }
}

// now is the only place where this package reads the clock.
func now() time.Time { return time.Now() }
