// Package engine is the worker. It claims tasks, runs them, and writes their
// outcomes.
//
// An Engine is one call of Runner.Work. One goroutine is its loop (loop.go).
// The loop runs cycles (cycle.go). A cycle is one transaction that writes the
// outcomes of ended attempts and claims tasks for the free slots. Each attempt
// has its own goroutine (attempt.go). These goroutines run at the same time as
// the loop:
//
//   - the heartbeat (heartbeat.go), which renews the leases of the running
//     tasks;
//   - the reaper (reaper.go), which takes over tasks of workers that died or
//     hang;
//   - the scheduler (scheduler.go), which enqueues the tasks of schedules;
//   - retention (retention.go), which deletes old tasks. The clock (clock.go)
//     pauses retention when the wall clock jumps.
//
// Nothing polls the table of tasks. The loop reads it when this process has
// enqueued something, when another process has committed (db.DB.Subscribe), and
// when the next scheduled task is due.
//
// Each worker holds a liveness lock (lock.go). The system releases the lock
// when the worker dies, and other workers notice that at once. A function finds
// its attempt through its context (context.go, progress.go, steps.go, tx.go).
package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/supervisor"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// Options configure an Engine. Package runner sets the defaults, so the Engine
// has no defaults.
type Options struct {
	Owner    any // the *runner.Runner whose Work runs this engine
	Store    *db.DB
	Log      *slog.Logger
	Version  string                  // version of the program
	Handlers map[string]jobs.Handler // handlers by the name of the job, including the middleware
	// PrepareTick may change the Spec of a task of a schedule, or refuse the
	// task. It must be quick.
	PrepareTick func(context.Context, *jobs.Spec) error
	OnTick      map[string]TickFunc // functions by the name of the schedule

	// Only is the id of the only task that this worker runs; 0 for all tasks.
	// It is -1 until AddOnly has added that task. A worker with one task
	// enqueues no tasks of schedules and deletes no old tasks.
	Only       int64
	Stdin      *os.File      // stdin of that task; nil for /dev/null
	WriteEvery time.Duration // how long the worker collects outcomes and claims before it writes them; 0 to write at once
	WorkOptions
}

// WorkOptions are runner.WorkOptions, which has their documentation.
type WorkOptions struct {
	Concurrency      int
	Queues           []jobs.QueueMax
	UntilEmpty       bool
	Grace            time.Duration
	Lease            time.Duration
	Name             string
	Keep, KeepFailed time.Duration
	Liveness         func(running int, draining bool)
	LivenessEvery    time.Duration
	ForeignTriggers  bool
}

// beatEvery returns the interval of heartbeats, a sixth of the lease. Other
// regular work that depends on the lease uses the same interval.
func (o *Options) beatEvery() time.Duration { return o.Lease / 6 }

// Engine is the worker of one call of Work: a loop that claims tasks and starts
// and ends attempts, and the background goroutines.
type Engine struct {
	o          Options
	c          *Commands // nil if the worker runs no commands
	store      *db.DB
	started    func(id int64) // see NoteStarts; nil for none
	log        *slog.Logger
	info       db.WorkerInfo
	worker     *db.Worker
	lock       *supervisor.Lock // liveness lock of this worker; nil on systems without such locks
	lockState  atomic.Int32     // state of the lock file: lockRemoved, lockReplaced, or 0 if the file is in its place
	guardians  guardians        // nil if the worker runs no commands
	reaper     *reaper
	ended      chan *attempt
	progressed chan struct{}   // has a value if an attempt has reported progress since the last write of reports
	stopped    context.Context // context that ends when the loop ends
	stop       context.CancelFunc
	failing    context.Context         // context that ends with the first error that ends the worker; the worker then drains
	fail       context.CancelCauseFunc // makes the worker drain and return an error from Run; only the first call has an effect
	background sync.WaitGroup          // goroutines other than the loop and the attempts
	clock      clock
	prefetches bool // whether the options allow the worker to prefetch

	walGrown bool // whether the heartbeat has warned about the size of the write-ahead log

	mu         sync.Mutex
	running    map[db.ClaimID]*attempt // mu also guards o.Queues
	newQueues  bool                    // whether o.Queues is to be recorded; see storeReports
	confirmed  time.Time               // time of the last successful heartbeat; leases count from that time
	prefetched []*attempt              // claimed attempts that wait for a slot, in the order in which they begin
	slotless   int                     // number of attempts in Engine.running that have no slot (attempt.slotless)

	schedulerMu sync.Mutex               // held while a tick is handled
	notOurs     []jobs.Schedule          // due schedules whose functions this worker does not have
	ticked      bool                     // whether a tick has enqueued a task since the last call of endTicks
	ticksEnded  bool                     // whether this engine enqueues no more tasks of schedules
	tickFuncs   map[string]chan struct{} // for each schedule whose TickFunc hangs, a channel that is closed when the TickFunc returns

	loopState
}

// loopState is the state that the loop keeps from one cycle to the next. No
// other goroutine uses it.
type loopState struct {
	noPrefetchUntil time.Time  // time before which the loop prefetches nothing
	suspects        int        // number of running suspects; while a suspect runs, no other task runs
	unwritten       []*attempt // attempts that have ended, but whose outcomes are not in the database yet
	phase           phase
	phaseEnd        time.Time // time of the next phase; zero if only an event begins it
	nextDue         time.Time // earliest due time of the scheduled tasks that the loop knows
	nextStart       time.Time // time at which a due task that waits for a rate limit or a full batch can start; zero if no task waits
	nextLane        time.Time // time at which a due task that waits for the rate limit of its lane can start; zero if no task waits

	scan       bool      // whether the next cycle looks for changes of other processes
	changed    bool      // whether other processes may have changed something since the last scan
	scannedAt  time.Time // time of the last scan
	claimMore  bool      // whether more tasks may be ready to start than the last cycle claimed
	backlog    bool      // whether tasks may be left to claim: slots or a limit are used up, or an ended task has released other tasks
	foundEmpty bool      // whether the last cycle scanned and found no task

	backoff       time.Duration // length of the last pause after an error
	wroteAt       time.Time     // time of the last cycle that finished or claimed tasks
	postponedTill time.Time     // earliest time of the next cycle, after an error or while the machine has no resources for commands
	failures      int           // number of consecutive cycles with an error other than jobs.ErrBusy, ErrFull or ErrUnknown

	reconciledAt time.Time // time of the last search for claims that succeeded although they returned an error (see releaseUnacknowledged)
	cancelReadAt time.Time // time of the last read of cancel requests
	cancelDueAt  time.Time // time of the next read of cancel requests; zero if there is no reason to read them

	diskFull    bool      // whether the last cycle with a free slot found the disk full
	diskCheckAt time.Time // time of the next check for free space on the disk, if it is full

	finished     int           // number of attempts that have ended
	released     int           // number of tasks that went back to their queues
	comebacks    map[int64]int // numbers of returns in a row, by the id of the task; see limitComebacks
	lastFinishes []db.Finish   // outcomes that the last cycle wrote; the next cycle uses the memory of this slice again

	visited       bool      // whether a cycle has succeeded since the last call of WorkOptions.Liveness
	livenessAt    time.Time // time of the next call of WorkOptions.Liveness; zero before the first call
	drainReported bool      // whether the last call had Draining set
}

// Server connects to databases on a server; see runner.Engine.
type Server struct{ Driver *db.Engine }

type startedKey struct{}

// NoteStarts returns a context whose Work calls started with the id of the task
// at the start of each attempt, in their order.
func NoteStarts(ctx context.Context, started func(id int64)) context.Context {
	return context.WithValue(ctx, startedKey{}, started)
}

// New registers a worker in the database. The caller must then call Run.
func New(ctx context.Context, o Options) (*Engine, error) {
	host, _ := os.Hostname() // ignore an error, because only people read the host name and no code depends on it
	name := o.Name
	if name == "" {
		name = fmt.Sprintf("%s:%d", host, os.Getpid())
	}

	e := &Engine{o: o, c: CommandsOf(o.Handlers[command.Job]), store: o.Store, log: o.Log, prefetches: o.mayPrefetch(),
		ended: make(chan *attempt, o.maxRunning()+prefetchMax), progressed: make(chan struct{}, 1), running: map[db.ClaimID]*attempt{},
		confirmed: now(),
		tickFuncs: map[string]chan struct{}{}}
	e.stopped, e.stop = context.WithCancel(context.Background())
	e.failing, e.fail = context.WithCancelCause(context.Background())
	claimed := make([]db.ClaimJob, 0, len(o.Handlers))
	for _, job := range slices.Sorted(maps.Keys(o.Handlers)) {
		h := o.Handlers[job]
		claimed = append(claimed, db.ClaimJob{Job: job, MaxAttempts: h.MaxAttempts, Batch: h.BulkSize, Wait: h.BulkWait})
	}

	e.info = db.WorkerInfo{ID: db.NewWorkerID(), Name: name, Host: host, BootID: BootID(), PID: os.Getpid(), Namespace: pidNamespace(),
		User: db.CurrentUser(), UID: os.Getuid(), Version: o.Version, Slots: o.Concurrency, Queues: o.Queues, Lease: o.Lease,
		StartedAt: e.confirmed}
	if o.Only == 0 {
		e.info.Jobs = slices.Sorted(maps.Keys(o.Handlers))
	}

	e.started, _ = ctx.Value(startedKey{}).(func(id int64))
	e.reaper = &reaper{e: e, freeSince: map[string]time.Time{}}
	var err error
	if e.c != nil {
		if err = e.c.check(e.c.GuardianPath); err != nil {
			return nil, err
		}
	}
	if e.lock, err = newLock(e.store, e.info.ID); err != nil { // take the lock before Register makes this worker visible to others
		return nil, err
	}
	if e.c != nil {
		e.guardians = e.c.start(e)
	}
	if err = e.startClock(ctx, e.confirmed); err != nil {
		e.unlock(true)
		return nil, err
	}
	if e.worker, err = e.store.Register(ctx, e.info, claimed); err != nil {
		// Register may have succeeded despite the error. Then keep the lock
		// file, so that other workers notice the end of this worker.
		e.unlock(!errors.Is(err, jobs.ErrUnknown))
		return nil, err
	}

	if e.c != nil {
		e.worker.SetHooks(e.c.Hooks)
	}
	return e, nil
}

// AddOnly adds the only task of this worker, and reserves it. Call it before
// Run.
func (e *Engine) AddOnly(ctx context.Context, spec *jobs.Spec) (jobs.Enqueued, error) {
	added, err := e.store.InsertReserved(ctx, e.worker, spec, e.o.Stdin != nil, now())
	if err != nil {
		return added, err
	}
	e.o.Only = added.ID
	if added.Kept { // the older task doesn't expect this input
		e.o.Stdin = nil
	}
	return added, nil
}

// Run works until ctx ends and then drains. When aborted ends, Run kills the
// attempts that still run, even while its loop waits for the write lock. Their
// tasks go back to their queues.
func (e *Engine) Run(ctx, aborted context.Context) error {
	defer context.AfterFunc(aborted, func() { e.stopAll(jobs.ErrShutdown, true) })()

	write := context.WithoutCancel(ctx) // the end of ctx must not interrupt a write
	notices, unsubscribe := e.store.SubscribeWorker(ctx)
	defer unsubscribe()

	if e.c != nil && e.c.OwnProcess {
		if err := e.c.dedicate(); err != nil {
			e.log.Warn("cannot adopt processes that outlive their parents", "err", err)
		}
		e.background.Go(e.guardians.Prepare)
	}

	// Everything that reads the database now does so in turn: SQLite would give
	// a second reader a connection of its own, which stays and needs 0.7 MB.
	reaperNotices, unsubscribeReaper := e.store.SubscribeWorker(ctx)
	defer unsubscribeReaper()

	e.reaper.start()
	e.background.Go(e.heartbeat)
	e.background.Go(e.reports)
	e.background.Go(func() { e.reaper.run(reaperNotices) })
	scheduling, stopScheduling := context.WithCancel(ctx)
	if e.o.Only == 0 {
		e.setBack(write, now())
		next := e.tick(write, true) // call tick before the loop starts, so that UntilEmpty also runs the tasks of due ticks
		e.alert(write)
		e.background.Go(func() { e.schedule(scheduling, write, next) })
		e.background.Go(e.retain)
	}

	err := e.loop(ctx, write, aborted, notices)
	e.store.SetBusy(false)
	stopScheduling()
	e.stop()
	e.background.Wait()
	clean := len(e.running) == 0
	if e.guardians != nil && !e.guardians.Close() {
		clean = false
	}
	if clean && !unusable(err) { // if End is not called, a reaper of another worker takes the lock and cleans up
		e.watchClock(write)
		if end := e.worker.End(write, now()); end != nil {
			clean = false
			if err == nil {
				err = end
			}
		}
	}

	e.unlock(clean)
	e.log.Info("stopped", "finished", e.finished, "released", e.released)
	return err
}

// failed returns the error that ends the worker. It returns nil while the
// worker continues.
func (e *Engine) failed() error { return context.Cause(e.failing) }

// waitFor waits for d. It returns false if the loop ends earlier.
func (e *Engine) waitFor(d time.Duration) bool { return wait(e.stopped, d) == nil }

// wait waits for d, or until ctx ends.
func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// now returns the current time. This package reads the clock nowhere else.
func now() time.Time { return time.Now() }
