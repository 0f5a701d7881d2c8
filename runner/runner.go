package runner

import (
	"context"
	"database/sql"
	"log/slog"
	"sync"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/runner/internal/engine"
)

// Runner is an open database and the jobs that this process can run. Its
// methods are safe for use by many goroutines.
type Runner struct {
	store      *db.DB
	options    Options
	log        *slog.Logger
	handlers   map[string]jobs.Handler
	middleware []Middleware
	onTick     map[string]engine.TickFunc // functions of OnTick by the name of the schedule

	enqueueMiddleware []func(ctx context.Context, spec *jobs.Spec) error

	mu      sync.Mutex
	engine  *engine.Engine     // of the current Work; nil if it has not begun yet
	queues  *[]jobs.QueueMax   // of setQueues, before engine is set
	abort   context.CancelFunc // aborts the current Work; nil if no Work runs
	stop    context.CancelFunc // stops the current Work in the same way as the end of its context
	closed  bool
	closing chan struct{}  // closed by Close
	works   sync.WaitGroup // counts the running calls of Work (0 or 1); Close waits for 0
}

// Open opens the database file at path. With Options.Engine, the path can also
// be the address of a database on a server. It creates the database unless the
// options say otherwise, and upgrades its schema. The directory of the file
// must exist. Errors are *jobs.Error of kind jobs.ErrNoDatabase, ErrSchema,
// ErrPermission, ErrBusy, ErrCorrupt or ErrInvalid. After an error nothing has
// changed.
func Open(ctx context.Context, path string, options Options) (*Runner, error) {
	return open(ctx, path, options, options.Prefix != "")
}

// New opens a database file that an application has already opened: handle is
// the application's own handle to this file. The tables of runner have names
// that begin with Options.Prefix. New switches the file to WAL mode and changes
// nothing else of the application: migrations touch only the tables of runner,
// and application_id and user_version stay as they are. The table runner_schema
// has the prefix and the version of runner's schema. So `runner --db FILE`
// finds the tasks with any prefix. New also accepts a database that Open made.
//
// The handle must use the driver modernc.org/sqlite and have a file. New only
// reads the name of the file from the handle. The Runner opens its own
// connections. So the Runner and the application do not wait for each other's
// connections, and their pragmas do not affect each other. The application
// begins transactions for EnqueueTx and FinishTx on the handle. Close does not
// close the handle.
//
// New returns the errors of Open: *jobs.Error of kind jobs.ErrSchema,
// ErrPermission, ErrBusy or ErrCorrupt. It also returns jobs.ErrConflict if the
// application has a table with the name of one of runner's tables, and
// jobs.ErrInvalid for an invalid handle, prefix or option.
func New(ctx context.Context, handle *sql.DB, options Options) (*Runner, error) {
	path, err := db.PathOf(ctx, handle)
	if err != nil {
		return nil, err
	}
	options.MustExist = false // the file exists, but it may have no tables of runner yet, so New must be able to create them
	return open(ctx, path, options, true)
}

func open(ctx context.Context, path string, options Options, beside bool) (*Runner, error) {
	options = options.withDefaults()
	if err := options.validate(); err != nil {
		return nil, err
	}

	store, err := db.Open(ctx, path, db.Options{Create: !options.MustExist && !options.ReadOnly, ReadOnly: options.ReadOnly,
		Normal: options.Sync == SyncNormal, Flash: options.WriteEvery, Beside: beside, Prefix: options.Prefix, UnsafeFS: options.UnsafeFS,
		MaxBytes: options.MaxBytes, DropOldest: options.DropOldest,
		BusyTimeout: options.BusyTimeout, Engine: options.Engine.Driver, Dir: options.Dir})
	if err != nil && ctx.Err() != nil {
		return nil, context.Cause(ctx) // err only says that ctx has ended
	} else if err != nil {
		return nil, err
	}
	return &Runner{store: store, options: options, log: options.Log, handlers: map[string]jobs.Handler{},
		closing: make(chan struct{})}, nil
}

// Close closes the database. If Work runs, Close first stops it in the same way
// as the end of its context would, and waits until it has returned. The
// documentation of Work says how long that may take: usually at most
// WorkOptions.Grace and 5 s. A handler must not call Close, because Close would
// wait for this handler. A second call does nothing.
func (r *Runner) Close() error {
	r.mu.Lock()
	if !r.closed {
		r.closed = true
		close(r.closing)
	}
	if r.stop != nil {
		r.stop()
	}

	r.mu.Unlock()
	r.works.Wait()
	return r.store.Close()
}

func init() {
	db.Of = func(r any) *db.DB { return r.(*Runner).store }
	db.InsideOf = func(r any) db.Inside {
		of := r.(*Runner)
		return db.Inside{Jobs: of.jobs, Changes: of.changes, ApplySchedules: of.applySchedules, RunSchedule: of.runSchedule,
			Abort: of.abortWork, SetQueues: of.setQueues, WorkOne: of.workOne}
	}
}

// now returns the time. This package reads the clock nowhere else.
func now() time.Time { return time.Now() }
