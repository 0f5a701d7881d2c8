package runner

import (
	"cmp"
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
	"example.com/runner/runner/internal/exec"
)

// engine is one Work: a loop that claims, starts and settles attempts, and the goroutines beside it.
type engine struct {
	r          *Runner
	log        *slog.Logger
	info       db.WorkerInfo
	worker     *db.Worker
	lock       *supervisor.Lock // nil where the system has none
	lockLost   atomic.Int32     // what became of the lock's file
	commands   exec.Worker      // its Guardians are nil where there are neither commands nor a hook
	reaper     *reaper
	slots      int
	limit      map[string]int // of each queue; nil: all queues
	untilEmpty bool
	hooks      *exec.Hooks
	handlers   map[string]runFunc // of the jobs, the middleware around them
	ended      chan *attempt
	stopped    chan struct{} // closed when the loop is over
	beside     sync.WaitGroup

	failing chan struct{} // closed when the work cannot go on: it drains
	clock   clock

	logGrown bool // the heartbeat has warned of it

	mu        sync.Mutex
	running   map[db.ClaimID]*attempt
	confirmed time.Time  // when the last beat was sent that came through: leases last from there
	reporting []*attempt // those with a report to be stored; not empty: somebody is about to
	closed    bool       // nothing is started beside the loop any more
	failure   error      // why failing is closed

	ticks  sync.Mutex // held by a tick
	ticked bool       // a tick enqueued something since this was last asked
	over   bool       // nothing ticks any more

	// The rest belongs to the loop.
	alone     int           // suspects that run: nothing runs beside one
	unsettled []*attempt    // ended, and not yet written
	finish    []db.Finish   // of the last turn: the next one uses its memory
	nextDue   time.Time     // of what is known to be scheduled
	nextStart time.Time     // when a rate lets a task start that is due already
	nextLane  time.Time     // the same of the rate of a lane
	look      bool          // the next turn looks for what others have changed
	changed   bool          // somebody else may have changed something since the last look
	lookedAt  time.Time     // when a turn last looked
	more      bool          // the last claim may have left something
	empty     bool          // the last turn looked, and found nothing
	pause     time.Duration // the last one, after an error
	resumeAt  time.Time     // no turn before it: after an error, or when the machine has no room for commands
	sweptAt   time.Time     // when ghosts were last looked for
	askedAt   time.Time     // when cancel requests were last looked for
	askAt     time.Time     // when to look next; zero: there is no reason to
	failures  int           // turns in a row that failed for good
	noRoom    error         // why nothing is claimed: the disk is nearly full
	roomAt    time.Time     // when to look again
	finished  int
	released  int
	pulses    pulsing // what Options.Liveness was told
}

func (r *Runner) newEngine(ctx context.Context, untilEmpty bool) (*engine, error) {
	o := r.options
	host, _ := os.Hostname() // for people only
	name := o.Name
	if name == "" {
		name = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	e := &engine{r: r, log: r.log, slots: o.Concurrency, untilEmpty: untilEmpty, commands: exec.Worker{Store: r.store, Environ: exec.Environ(os.Environ())},
		ended: make(chan *attempt, o.Concurrency), stopped: make(chan struct{}), failing: make(chan struct{}), running: map[db.ClaimID]*attempt{}, confirmed: now()}
	e.hooks = exec.NewHooks(&e.commands, o.OnFailure, e.log)
	e.handlers = r.wrapped()
	if o.Queues != nil {
		e.limit = map[string]int{}
		for _, q := range o.Queues {
			if err := jobs.ValidQueue(q.Queue); err != nil {
				return nil, err
			}
			if e.limit[q.Queue] = q.Max; q.Max <= 0 {
				e.limit[q.Queue] = o.Concurrency
			}
		}
	}
	claimed := make([]db.ClaimJob, 0, len(r.handlers))
	for _, job := range slices.Sorted(maps.Keys(r.handlers)) {
		claimed = append(claimed, db.ClaimJob{Job: job, MaxAttempts: r.handlers[job].MaxAttempts})
	}
	e.info = db.WorkerInfo{ID: db.NewWorkerID(), Name: name, Host: host, BootID: bootID(), PID: os.Getpid(), Namespace: pidNamespace(),
		User: r.user(), UID: os.Getuid(), Version: Version, Slots: o.Concurrency, Queues: convert(o.Queues, func(q QueueMax) db.QueueMax { return db.QueueMax(q) }), Lease: o.Lease, StartedAt: e.confirmed}
	e.reaper = newReaper(e)
	var err error
	_, commands := r.handlers[jobs.CommandJob]
	guarded := commands || len(o.OnFailure) > 0
	if guarded {
		if err := exec.CheckGuardian(o.GuardianPath); err != nil {
			return nil, err
		}
	}
	if e.lock, err = r.newLock(e.info.ID); err != nil { // before anybody can read of this worker
		return nil, err
	}
	if guarded {
		e.commands.Guardians = exec.NewGuardians(exec.GuardiansOptions{Path: o.GuardianPath, Version: Version, Worker: e.info.ID, Lock: e.lock,
			Adopt: o.OwnProcess, Log: e.log, Fail: e.fail, Stopped: e.stopped})
	}
	if err = e.startClock(ctx, e.confirmed); err != nil {
		e.unlock(true)
		return nil, err
	}
	if e.worker, err = r.store.Register(ctx, e.info, claimed); err != nil {
		e.unlock(!errors.Is(err, jobs.ErrUnknown)) // if it is registered after all, its lock tells the others that it is dead
		return nil, err
	}
	return e, nil
}

// unlock lets the liveness lock go. Its file stays when something may be left behind: whoever takes the lock looks after that.
func (e *engine) unlock(clean bool) {
	if e.lock == nil {
		return
	}
	if clean {
		_ = e.lock.Remove() // a stray file is removed by the next start
	}
	_ = e.lock.Close()
}

// run is the life of a Work: until ctx ends, then a drain, which the end of aborted cuts off.
func (e *engine) run(ctx context.Context, aborted <-chan struct{}) error {
	write := context.WithoutCancel(ctx) // writes are never cut off by the end of the work
	notices, unsubscribe := e.r.notifier.SubscribeWorker(ctx)
	defer unsubscribe()
	if e.r.options.OwnProcess {
		if err := supervisor.Dedicate(); err != nil {
			e.log.Warn("cannot keep processes that outlive their parents", "err", err)
		}
		if e.commands.Guardians != nil {
			e.beside.Go(e.commands.Guardians.Prepare)
		}
	}
	e.reaper.start()
	e.beside.Go(e.heartbeat)
	e.beside.Go(e.reaper.run)
	e.beside.Go(e.retain)
	e.setBack(write, now())
	next := e.tick(write, true) // first: WorkUntilEmpty runs what it enqueues
	e.beside.Go(func() { e.schedules(ctx, write, next) })
	err := e.loop(ctx, write, notices, aborted)
	e.r.notifier.SetBusy(false)
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	close(e.stopped)
	e.beside.Wait()
	err = cmp.Or(err, e.hooks.End(aborted))
	clean := len(e.running) == 0
	if e.commands.Guardians != nil && !e.commands.Guardians.Close() {
		clean = false
	}
	if clean && !unusable(err) { // else it is for others to find out: whoever takes the lock
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

// fail makes the work drain and end with err. The first error counts.
func (e *engine) fail(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.failure == nil {
		e.failure = err
		close(e.failing)
	}
}

func (e *engine) failed() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.failure
}
