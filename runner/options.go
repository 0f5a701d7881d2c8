package runner

import (
	"log/slog"
	"runtime"
	"time"

	"example.com/runner/db"
)

// Sync says whether a commit is on the disk before a call returns.
type Sync int

// The levels of Sync.
const (
	Full   Sync = iota // enqueues and finishes are on the disk: they survive a power failure
	Normal             // commits do no fsync: they survive the death of any process, but a power failure may undo the last ones
)

// Options configure a Runner. The zero Options has all defaults.
type Options struct {
	// MustExist makes Open fail with jobs.ErrNoDatabase instead of creating the file. Defaults to false.
	MustExist bool
	// ReadOnly makes Open neither create nor upgrade the file, and every write fail. Defaults to false.
	ReadOnly bool
	// BusyTimeout is how long a write waits while other processes hold the write lock of the file. Defaults to 5 s.
	BusyTimeout time.Duration
	// UnsafeFS accepts a database on a network filesystem, where locks are not reliable. Defaults to false.
	UnsafeFS bool
	// Prefix is the start of the names of runner's tables, indexes, views and triggers, for a file that has other tables, too. It
	// is a letter or underscore, followed by at most 31 letters, digits or underscores. The file remembers it. Defaults to the
	// prefix that the file remembers. For a new file New defaults to "runner_" and Open to none; without a Prefix Open refuses the
	// file of another program.
	Prefix string
	// Sync says whether a commit is on the disk before a call returns. Defaults to Full.
	Sync Sync
	// Log receives what the worker does. Attempts that fail are warnings. Defaults to none.
	Log *slog.Logger

	// Concurrency is how many attempts Work runs at once. Defaults to runtime.GOMAXPROCS(0).
	Concurrency int
	// Queues are the queues that Work serves, in turn. Defaults to all.
	Queues []QueueMax
	// MaxWait is the ageing limit: tasks that have been due for longer than MaxWait start first in their queue, whatever their priority.
	// Defaults to no ageing.
	MaxWait time.Duration
	// Grace is how long Work lets running attempts continue after its context has ended. Negative for no time. Defaults to 30 s.
	Grace time.Duration
	// Lease is how long a task stays with this worker without a heartbeat. The worker sends a heartbeat every sixth of it. With a
	// lease below MinLease other workers may take a live worker on a busy machine for a hung one; such leases are for tests. At
	// least 100 ms. Defaults to 60 s.
	Lease time.Duration
	// Timeout limits attempts of commands that have no timeout of their own. Defaults to no limit.
	Timeout time.Duration
	// Name is the name of the worker for people. Defaults to HOST:PID.
	Name string
	// Keep is how long Work keeps tasks that completed or were cancelled, with their attempts and output. KeepFailed is the same for tasks
	// that failed. If workers differ, the shortest time counts. Negative for ever. They default to 7 and 30 days.
	Keep, KeepFailed time.Duration
	// OnFailure is a command that Work runs once for each task that Work makes failed. It is best effort, and killed after a
	// minute. It gets the environment of the task, RUNNER_TASK_STATE, RUNNER_TASK_REASON and RUNNER_TASK_ERROR, and the last 50
	// lines of the task's output on its stdin. It dies with the worker, so a program that sets OnFailure must call Guardian.
	// Defaults to none.
	OnFailure []string
	// Liveness is a callback for a watchdog. The loop of Work calls it after its first claim, when it begins to drain, and at least every
	// LivenessEvery, each time after it has used the database. It must return at once. Defaults to none.
	Liveness func(Liveness)
	// LivenessEvery is the longest time between two calls of Liveness. Defaults to a sixth of Lease.
	LivenessEvery time.Duration
	// InsecurePerms lets Work run commands although another user than its own may write the database. Write access to the database
	// is command execution as the user of Work. Defaults to false.
	InsecurePerms bool
	// ForeignTriggers lets Work use a database in which someone has added triggers or indexes to runner's own tables. They act in
	// each write of a worker. Tables of an application, and triggers on them, need no permission. Defaults to false.
	ForeignTriggers bool

	// GuardianPath is an installed program that begins with Guardian, such as runner itself, in the same version as this package. It guards
	// commands in place of this program. Defaults to this program, which must call Guardian.
	GuardianPath string
	// OwnProcess declares that this process does nothing but Work. Work then adopts processes that outlive their parents, and
	// commands cannot read the memory of this process. Linux only. Defaults to false: Work does not change the process.
	OwnProcess bool

	// Alone declares that no other process writes the file while it is open. Then no watch of the file runs, and tasks that other processes
	// enqueue are found late. Tests on fake time need it, because a goroutine that waits for the system would stop their clock. Defaults to
	// false.
	Alone bool
	// Inline makes Enqueue, Add and EnqueueAll run the tasks that are due before they return, unless Work runs. It is for tests. EnqueueTx
	// cannot do that, because its transaction is not committed yet. Defaults to false.
	Inline bool
	// Engine lets Open take the address of a PostgreSQL server, such as postgres://user@host/app: see package runner/postgres. What is
	// documented for the file does not hold there; docs/postgres.md documents the differences. Defaults to none.
	Engine Engine
	// Dir is the directory of this host for databases on a server. Each database has a directory of its own in it, with results of running
	// commands and the liveness locks of the workers of this host. Defaults to a directory in the user's state directory.
	Dir string
	// Driver is the name of a database/sql driver for the connection that writes. It must wrap the driver of modernc.org/sqlite,
	// which is the default.
	Driver string
}

// Engine connects to databases on a server. Function Engine of package runner/postgres returns one. The zero Engine connects to none.
type Engine struct{ driver *db.Engine }

const (
	// MinLease is the shortest Options.Lease that is reliable on a busy machine, and the shortest that the command runner work accepts.
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

// Liveness is the report of Work that its loop has just used the database.
type Liveness struct {
	Running  int           // attempts
	Draining bool          // whether Work starts nothing more
	Left     time.Duration // Draining: until Work gives up the attempts that still run
}
