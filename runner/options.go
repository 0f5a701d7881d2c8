package runner

import (
	"cmp"
	"log/slog"
	"runtime"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/runner/internal/engine"
)

// Sync says whether a commit is on the disk before a call returns.
type Sync int

// The levels of Sync.
const (
	SyncFull   Sync = iota // new tasks and outcomes of attempts are on the disk, so they survive a power failure
	SyncNormal             // commits skip the fsync; they survive the death of any process, but a power failure may undo the last commits
	SyncFlash              // like SyncNormal, but writes far fewer bytes; a power failure undoes only commits younger than WriteEvery
)

// Options configure how Open and New open a database. The zero Options has all
// defaults. WorkOptions configure the worker.
type Options struct {
	// MustExist makes Open fail with jobs.ErrNoDatabase instead of creating the
	// file. Defaults to false.
	MustExist bool
	// ReadOnly keeps Open from creating or upgrading the file, and makes every
	// write fail. Defaults to false.
	ReadOnly bool
	// BusyTimeout is how long a write waits while other processes hold the
	// write lock of the file. Defaults to 5 s.
	BusyTimeout time.Duration
	// UnsafeFS accepts a database on a network filesystem, where locks are not
	// reliable. Defaults to false.
	UnsafeFS bool
	// Prefix is the start of the names of runner's tables, indexes, views and
	// triggers, for a file that has other tables, too. It is a letter or
	// underscore, followed by at most 31 letters, digits or underscores. The
	// file stores its prefix. Defaults to the stored prefix. In a new file, New
	// uses "runner_" by default and Open uses no prefix. Without a Prefix, Open
	// refuses the file of another program.
	Prefix string
	// Sync sets whether a commit must be on the disk before a call returns.
	// Defaults to SyncFull.
	//
	// SyncFlash is for flash storage that writes wear out, such as SD cards.
	// Its commits survive the death of any process. The write-ahead log is
	// synced at most WriteEvery after a commit, so a power failure undoes at
	// most the commits of that time. Work collects the outcomes of attempts and
	// the claims of more tasks, and writes them together at intervals of
	// WriteEvery. Work writes at once if no slot is free, if a task must not
	// run twice (jobs.MaxLosses(0)), and when it stops. So if a worker has just
	// written, a new task starts up to WriteEvery later, and an outcome is
	// visible up to WriteEvery later. If the process dies, the attempts whose
	// outcomes are not written yet count as lost, and their tasks run again. A
	// new file gets pages of 1 KiB; the size of the pages of an existing file
	// stays. On a server, commits survive a power failure as with SyncFull, but
	// Work collects its writes.
	Sync Sync
	// WriteEvery is, with SyncFlash, how long Work collects its writes, and how
	// long a commit stays without a sync. Defaults to 5 s.
	WriteEvery time.Duration
	// MaxBytes is a bound for the size of the file, at least 1 MiB; a server
	// has none. At the bound, a call that adds a task first deletes the oldest
	// finished tasks, also those that Keep or KeepFor would keep. If no
	// finished task is left, the call returns jobs.ErrFull, or drops tasks: see
	// DropOldest. All programs that add tasks to the file should set the same
	// bound. See docs/embedding.md for what else the files may take. Defaults
	// to no bound.
	MaxBytes int64
	// DropOldest makes room for a new task, if the unfinished tasks alone reach
	// MaxBytes: it cancels those of the waiting tasks that were added first,
	// but none that the same call adds. Defaults to false.
	DropOldest bool
	// Log receives the log records of the worker. A failed attempt is a
	// warning, and a failed task an error. Defaults to no log.
	Log *slog.Logger
	// Engine lets Open take the address of a PostgreSQL server, such as
	// postgres://user@host/app; see package runner/postgres. The documentation
	// of the database file does not apply to a server; docs/postgres.md
	// documents the differences. Defaults to no engine.
	Engine Engine
	// Dir is a directory on this host for the local files of databases on a
	// server. Each database has a subdirectory with the results of running
	// commands and the liveness locks of the workers of this host. Defaults to
	// a directory in the user's state directory.
	Dir string
}

// WorkOptions configure one call of Work. The zero WorkOptions has all
// defaults.
type WorkOptions struct {
	// Concurrency is how many attempts Work runs at once; the attempts of a
	// bulk call count as one. Defaults to runtime.GOMAXPROCS(0).
	Concurrency int
	// Queues are the queues whose tasks Work runs. Work takes tasks from them
	// in turn. Defaults to all queues.
	Queues []jobs.QueueMax
	// UntilEmpty makes Work also return when nothing runs and no task is due.
	// It also runs tasks that become due before it returns. Defaults to false.
	UntilEmpty bool
	// Grace is how long Work lets running attempts continue after its context
	// has ended. A negative value means no time. Defaults to 30 s.
	Grace time.Duration
	// Lease is how long a task stays with this worker without a heartbeat. The
	// worker sends six heartbeats in that time. With a lease below 5 s, other
	// workers may treat a live worker on a busy machine as a hung one. So use
	// such a lease in tests only. The shortest lease is 100 ms. Defaults to 60
	// s, and with SyncFlash to 5 minutes.
	Lease time.Duration
	// Name is the name of the worker in lists and logs. Defaults to HOST:PID.
	Name string
	// Keep is how long Work keeps tasks that completed or were cancelled, with
	// their attempts and output. KeepFailed is the same for tasks that failed.
	// Every worker deletes by its own values, so the shortest time of all
	// workers of a database counts. A negative value keeps the tasks for ever.
	// Keep defaults to 7 days, and KeepFailed to 30 days.
	Keep, KeepFailed time.Duration
	// Liveness is a callback for a watchdog. Work calls it after the first
	// claim, when Work begins to stop, and at intervals of at most
	// LivenessEvery. Work uses the database before each call, so a call shows
	// that the database works. It gets the number of slots that run attempts,
	// and whether Work is stopping. Liveness must return at once. Defaults to
	// no function.
	Liveness func(running int, draining bool)
	// LivenessEvery is the longest time between two calls of Liveness. Defaults
	// to a sixth of Lease.
	LivenessEvery time.Duration
	// ForeignTriggers lets Work use a database in which someone has added
	// triggers or indexes to runner's own tables. Such triggers and indexes
	// take effect in each write of a worker. Tables of an application, and
	// triggers on those tables, need no ForeignTriggers. Defaults to false.
	ForeignTriggers bool
}

// Engine connects to databases on a server. Package runner/postgres has one.
// The zero Engine connects to none.
type Engine = engine.Server

const (
	shortestLease = 100 * time.Millisecond
	defaultLease  = time.Minute
	flashLease    = 5 * time.Minute // default of Lease with SyncFlash; it is longer, because each heartbeat is a write
	defaultWrite  = 5 * time.Second
	defaultGrace  = 30 * time.Second
)

func (o Options) withDefaults() Options {
	write := time.Duration(0)
	if o.Sync == SyncFlash {
		write = cmp.Or(o.WriteEvery, defaultWrite)
	}

	o.Log, o.WriteEvery = logger(o.Log), write
	return o
}

func (o WorkOptions) withDefaults(sync Sync) WorkOptions {
	lease := defaultLease
	if sync == SyncFlash {
		lease = flashLease
	}

	o.Concurrency = cmp.Or(o.Concurrency, runtime.GOMAXPROCS(0))
	o.Grace = cmp.Or(o.Grace, defaultGrace)
	o.Lease = cmp.Or(o.Lease, lease)
	o.LivenessEvery = cmp.Or(max(o.LivenessEvery, 0), o.Lease/6)
	o.Keep = cmp.Or(o.Keep, taskspec.DefaultKeep)
	o.KeepFailed = cmp.Or(o.KeepFailed, taskspec.DefaultKeepFailed)
	return o
}
