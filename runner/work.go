package runner

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/process"
	"example.com/runner/jobs"
)

// Work runs tasks until ctx ends. Then it starts nothing more, gives the running attempts Options.Grace to end, stops the others
// (their tasks go back, uncounted), and returns nil. It returns an error when the database can no longer be used, jobs.ErrShutdown
// when Abort cut it off, and jobs.ErrInvalid when there is nothing that it could run. One Work at a time.
func (r *Runner) Work(ctx context.Context) error { return r.work(ctx, false) }

// WorkUntilEmpty is Work that also returns when nothing runs and no task is due: what is due, and what becomes due meanwhile.
func (r *Runner) WorkUntilEmpty(ctx context.Context) error { return r.work(ctx, true) }

// Abort ends the grace of a Work that is under way: its attempts are killed and go back, and it returns jobs.ErrShutdown.
func (r *Runner) Abort() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.abort != nil {
		r.abort()
	}
}

func (r *Runner) work(ctx context.Context, untilEmpty bool) error {
	if len(r.handlers) == 0 {
		return fmt.Errorf("%w: no job is registered", jobs.ErrInvalid)
	}
	if err := r.insecure(); err != nil {
		return err
	}
	aborted, abort := context.WithCancel(context.WithoutCancel(ctx))
	defer abort()
	r.mu.Lock()
	if r.abort != nil {
		r.mu.Unlock()
		return fmt.Errorf("%w: Work is running already", jobs.ErrConflict)
	}
	r.abort = abort
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.abort = nil
	}()
	e, err := r.newEngine(ctx, untilEmpty)
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.abort = func() {
		abort()
		e.stopAll(jobs.ErrShutdown, true) // here too: the loop may be waiting for a lock
	}
	r.mu.Unlock()
	return e.run(ctx, aborted.Done())
}

// engine is one Work: a loop that claims, starts and settles attempts, and the goroutines beside it.
type engine struct {
	r          *Runner
	log        *slog.Logger
	info       db.WorkerInfo
	worker     *db.Worker
	lock       *process.Lock // nil where the system has none
	lockLost   atomic.Int32  // what became of the lock's file
	guard      *guard        // nil: no commands
	reaper     *reaper
	slots      int
	limit      map[string]int // of each queue; nil: all queues
	untilEmpty bool
	environ    []string // of commands: the process's own, without what is runner's
	hooks      *hooks
	handlers   map[string]runFunc // of the jobs, the middleware around them
	ended      chan *attempt
	stopped    chan struct{} // closed when the loop is over
	beside     sync.WaitGroup

	failing chan struct{} // closed when the work cannot go on: it drains

	logGrown bool // the heartbeat has warned of it

	mu        sync.Mutex
	running   map[db.ClaimID]*attempt
	confirmed time.Time  // when the last beat was sent that came through: leases last from there
	reporting []*attempt // those with a report to be stored; not empty: somebody is about to
	closed    bool       // nothing is started beside the loop any more
	failure   error      // why failing is closed

	// The rest belongs to the loop.
	alone     int           // suspects that run: nothing runs beside one
	unsettled []*attempt    // ended, and not yet written
	finish    []db.Finish   // of the last turn: the next one uses its memory
	nextDue   time.Time     // of what is known to be scheduled
	nextStart time.Time     // when a rate lets a task start that is due already
	nextLane  time.Time     // the same of the rate of a lane
	look      bool          // somebody else may have changed something
	more      bool          // the last claim may have left something
	empty     bool          // the last turn looked, and found nothing
	pause     time.Duration // the last one, after an error
	resumeAt  time.Time     // no turn before it: after an error, or when the machine has no room for commands
	sweptAt   time.Time     // when ghosts were last looked for
	failures  int           // turns in a row that failed for good
	noRoom    error         // why nothing is claimed: the disk is nearly full
	roomAt    time.Time     // when to look again
	finished  int
	released  int
	pulses    pulsing // what Options.Pulse was told
}

func (r *Runner) newEngine(ctx context.Context, untilEmpty bool) (*engine, error) {
	o := r.options
	host, _ := os.Hostname() // for people only
	name := o.Name
	if name == "" {
		name = fmt.Sprintf("%s:%d", host, os.Getpid())
	}
	e := &engine{r: r, log: r.log, slots: o.Concurrency, untilEmpty: untilEmpty, environ: commandEnviron(os.Environ()),
		ended: make(chan *attempt, o.Concurrency), stopped: make(chan struct{}), failing: make(chan struct{}), running: map[db.ClaimID]*attempt{}, confirmed: now()}
	e.hooks = newHooks(e, o.OnFailure)
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
		User: r.user(), UID: os.Getuid(), Version: Version, Slots: o.Concurrency, Queues: o.Queues, Lease: o.Lease, StartedAt: e.confirmed}
	e.reaper = newReaper(e)
	var err error
	if _, commands := r.handlers[jobs.CommandJob]; commands {
		if e.guard, err = newGuard(e); err != nil {
			return nil, err
		}
	}
	if e.lock, err = r.newLock(e.info.ID); err != nil { // before anybody can read of this worker
		return nil, err
	}
	if e.worker, err = r.store.Register(ctx, e.info, claimed); err != nil {
		e.unlock(true)
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
	notices, unsubscribe := e.r.wake.subscribe(ctx)
	defer unsubscribe()
	if e.r.options.OwnProcess {
		if err := process.Dedicate(); err != nil {
			e.log.Warn("cannot keep processes that outlive their parents", "err", err)
		}
		if e.guard != nil {
			e.beside.Go(func() { _, _ = e.guard.get() }) // its error ends the work
		}
	}
	e.reaper.start()
	e.beside.Go(e.heartbeat)
	e.beside.Go(e.reaper.run)
	e.beside.Go(e.retain)
	next := e.tick(write, true) // first: WorkUntilEmpty runs what it enqueues
	e.beside.Go(func() { e.schedules(ctx, write, next) })
	err := e.loop(ctx, write, notices, aborted)
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	close(e.stopped)
	e.beside.Wait()
	err = cmp.Or(err, e.hooks.end(aborted))
	clean := len(e.running) == 0
	if e.guard != nil && !e.guard.close() {
		clean = false
	}
	if clean && !unusable(err) { // else it is for others to find out: whoever takes the lock
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

func (e *engine) loop(ctx, write context.Context, notices <-chan struct{}, aborted <-chan struct{}) error {
	var grace, abandon <-chan time.Time
	draining, failing := ctx.Done(), e.failing
	stopping := false // nothing is started any more
	e.look, e.more = true, true
	e.ready()
	for {
		if err := e.failed(); unusable(err) {
			e.log.Error("the work cannot go on", "err", err)
			e.awaitEnds()
			return err
		}
		if !stopping && (ctx.Err() != nil || e.failed() != nil) {
			stopping, draining, failing = true, nil, nil
			if err := e.failed(); err != nil {
				e.log.Error("the work cannot go on", "err", err)
			}
			e.log.Info("draining", "running", len(e.running), "grace", max(e.r.options.Grace, 0))
			e.beside.Go(func() {
				if err := e.worker.Drain(write); err != nil {
					e.log.Warn("cannot tell that this worker drains", "err", err)
				}
			})
			grace = time.After(max(e.r.options.Grace, 0))
			e.pulses.givesUpAt = now().Add(max(e.r.options.Grace, 0) + e.longestEnd())
		}
		e.pulse(write, stopping)
		// Without a free slot too what is due must become pending, and what expires must end.
		if !e.resting() && (len(e.unsettled) > 0 || !stopping && (e.more && e.free() > 0 || e.reached())) {
			if err := e.turn(write, stopping); err != nil {
				e.giveUp(err)
				e.awaitEnds()
				return err
			}
			continue // what became free, or what ended meanwhile, is looked at again without waiting
		}
		if e.idle() && (stopping || e.untilEmpty && !e.resting() && !e.isDue() && !e.held()) {
			if stopping || e.empty {
				return e.verdict(aborted)
			}
			e.look, e.more = true, true // nothing is known to be due: look once more before believing it
			continue
		}
		timer := time.NewTimer(e.untilPulse(e.sleep(stopping)))
		select {
		case a := <-e.ended:
			e.collect(a)
		case <-notices:
			e.look, e.more = true, true
			e.askedToCancel(write)
		case <-timer.C:
			e.look, e.more = true, true
		case <-draining:
		case <-failing:
		case <-grace:
			grace = nil
			abandon = time.After(e.stopAll(jobs.ErrShutdown, false))
		case <-aborted:
			aborted, grace = nil, nil
			abandon = time.After(min(e.stopAll(jobs.ErrShutdown, true), abortWait))
			stopping, draining, failing = true, nil, nil
		case <-abandon:
			abandon = nil
			e.abandonAll()
		}
		timer.Stop()
		e.sweep(write)
	}
}

const (
	firstPause   = 20 * time.Millisecond  // after an error
	longestPause = 2 * time.Second        //
	abortWait    = 700 * time.Millisecond // for killed attempts to end before they are given up
	stopWait     = 5 * time.Second        // beyond the longest kill_after
)

func (e *engine) verdict(aborted <-chan struct{}) error {
	if aborted == nil {
		return jobs.ErrShutdown
	}
	return e.failed()
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

func (e *engine) free() int {
	if e.alone > 0 {
		return 0
	}
	return e.slots - len(e.running)
}

func (e *engine) idle() bool { return len(e.running) == 0 && len(e.unsettled) == 0 }

func (e *engine) isDue() bool { return e.more || e.noRoom != nil || e.reached() }

// reached says whether the time has come of what is known to be scheduled, or to look whether the disk has room.
func (e *engine) reached() bool {
	at := now()
	return !e.nextDue.IsZero() && !e.nextDue.After(at) || e.noRoom != nil && !e.roomAt.After(at)
}

// held says whether a task that is due waits for a rate alone.
func (e *engine) held() bool { return !e.nextStart.IsZero() || !e.nextLane.IsZero() }

func (e *engine) resting() bool { return now().Before(e.resumeAt) }

func (e *engine) rest(d time.Duration) { e.resumeAt = now().Add(d) }

// sleep is how long there is nothing to do unless something happens.
func (e *engine) sleep(stopping bool) time.Duration {
	switch {
	case e.resting():
		return e.resumeAt.Sub(now())
	case stopping:
		return e.r.options.Lease / 6
	case e.noRoom != nil:
		return max(e.roomAt.Sub(now()), 0)
	}
	next := e.nextDue
	if e.free() > 0 && !e.nextStart.IsZero() && (next.IsZero() || e.nextStart.Before(next)) {
		next = e.nextStart
	}
	if next.IsZero() {
		return e.r.options.Lease / 6
	}
	// Times in the file are whole milliseconds; a jump of the wall clock delays nothing for long.
	return min(max(next.Sub(now()), 0)+time.Millisecond, e.r.options.Lease/6)
}

// collect takes an attempt that has ended, and those that end at the same moment: they share a transaction.
func (e *engine) collect(a *attempt) {
	e.unsettled = append(e.unsettled, a)
	for yields := 0; yields < 4; {
		select {
		case a := <-e.ended:
			e.unsettled = append(e.unsettled, a)
		default:
			runtime.Gosched()
			yields++
		}
	}
}

// turn writes what has ended, and claims and starts what fits. It returns an error only when the work cannot go on.
func (e *engine) turn(ctx context.Context, stopping bool) error {
	o := e.r.options
	finish := slices.Grow(e.finish[:0], len(e.unsettled))
	settled := make([]*attempt, 0, len(e.unsettled))
	for _, a := range e.unsettled {
		if a.fenced.Load() {
			e.forget(a, nil)
			continue
		}
		finish = append(finish, a.finish())
		settled = append(settled, a)
	}
	e.unsettled, e.finish = settled, finish
	slots, alone := e.slots-len(e.running)+len(settled), e.alone // when the settled ones are gone
	for _, a := range settled {
		if a.task.Suspect() {
			alone--
		}
	}
	sent := now()
	free := 0
	beating := sent.Sub(e.lastBeat()) < o.Lease/2 && e.lockLost.Load() != lockReplaced
	if !stopping && beating { // a worker whose beats fail takes nothing more
		if free = slots; alone > 0 {
			free = 0
		}
	}
	look := e.look || !e.nextDue.IsZero() && !e.nextDue.After(sent)
	done, err := e.worker.Turn(ctx, db.Turn{Now: sent, Finish: finish, Look: look,
		Claim: db.Claim{Free: free, Idle: slots == e.slots, Lease: o.Lease, Limit: e.room(settled), MaxWait: o.MaxWait}})
	if err != nil {
		return e.refused(err)
	}
	e.pause, e.failures, e.pulses.visitedAt = 0, 0, sent
	e.unsettled = e.unsettled[:0]
	clear(e.finish)
	for i, a := range settled {
		e.forget(a, &done.Finished[i])
	}
	if done.Looked {
		e.look, e.nextDue, e.nextLane = false, done.NextDue, done.NextLane
	}
	if free > 0 {
		e.nextStart = done.NextStart
	}
	for _, f := range done.Finished {
		if at := f.Change.RunAt; !at.IsZero() && (e.nextDue.IsZero() || at.Before(e.nextDue)) {
			e.nextDue = at
		}
	}
	e.more = free > 0 && len(done.Claimed) == free
	if slices.ContainsFunc(done.Finished, func(f db.Finished) bool { return f.Change.State == jobs.Pending && f.Change.Losses > 0 }) {
		e.look, e.more = true, true // a suspect now, which the claim of this turn may not have known of
	}
	e.empty = look && free > 0 && len(done.Claimed) == 0 && done.NoRoom == nil
	e.noteRoom(free > 0, done.NoRoom, sent)
	if !beating && !stopping && len(settled) == 0 { // the loop must not spin while beats fail
		e.rest(firstPause)
	}
	return e.start(ctx, done.Claimed, sent)
}

// refused decides what an error of a turn means. Whatever it was, the finishes are kept and written again: that is safe.
func (e *engine) refused(err error) error {
	e.pause = min(max(2*e.pause, firstPause), longestPause)
	e.rest(e.pause)
	if errors.Is(err, jobs.ErrBusy) || errors.Is(err, jobs.ErrFull) || errors.Is(err, jobs.ErrUnknown) {
		e.log.Warn("cannot write, will try again", "err", err, "waiting", len(e.unsettled))
		e.failures = 0
		return nil
	}
	if e.failures++; e.failures < 2 && !errors.Is(err, jobs.ErrReplaced) {
		e.log.Error("cannot write, will try once more", "err", err)
		return nil
	}
	return err
}

// room is how many tasks of each queue may still be claimed; nil: any number of any queue.
func (e *engine) room(settled []*attempt) map[string]int {
	if e.limit == nil {
		return nil
	}
	room := maps.Clone(e.limit)
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.running {
		room[a.task.Queue]--
	}
	for _, a := range settled {
		room[a.task.Queue]++
	}
	return room
}

// start begins the attempts of claimed tasks, in their order. sent is when the claim was sent: the leases last from there.
func (e *engine) start(ctx context.Context, claimed []jobs.Task, sent time.Time) error {
	if slices.ContainsFunc(claimed, func(t jobs.Task) bool { return t.MaxLosses == 0 }) {
		// A claim may be forgotten by a power cut. One that must never be repeated is on the disk before it starts.
		if err := e.worker.Sync(ctx, sent); err != nil {
			e.log.Warn("cannot sync a claim", "err", err)
			for _, task := range claimed {
				e.unsettled = append(e.unsettled, e.add(task, sent).notStarted())
			}
			return e.refused(err)
		}
	}
	for _, task := range claimed {
		a := e.add(task, sent)
		a.begin()
	}
	return nil
}

func (e *engine) add(task jobs.Task, sent time.Time) *attempt {
	a := newAttempt(e, task)
	e.mu.Lock()
	defer e.mu.Unlock()
	a.deadline = e.deadline(sent)
	e.running[a.claim] = a
	if task.Suspect() {
		e.alone++
	}
	return a
}

// deadline is when the processes of an attempt must be dead whose lease was renewed, or claimed, by a write that was sent then.
func (e *engine) deadline(sent time.Time) time.Time {
	return sent.Add(e.r.options.Lease - e.r.options.Lease/6)
}

// forget ends the life of an attempt in this process. done is nil when it was fenced before it could be written.
func (e *engine) forget(a *attempt, done *db.Finished) {
	e.mu.Lock()
	delete(e.running, a.claim)
	if a.task.Suspect() {
		e.alone--
	}
	e.mu.Unlock()
	a.cancel(nil)
	switch {
	case done == nil || done.Fenced:
		e.r.fenced.Add(1)
		e.log.Warn("result refused: the task belongs to a newer generation", "task", a.task.ID, "attempt", a.task.Attempt)
	case a.release:
		e.released++
		if a.trouble != nil {
			e.rest(10 * firstPause) // the machine has no room: claim later
			e.log.Warn("not started, given back", "task", a.task.ID, "err", a.trouble)
		}
	default:
		if done.Change.State == jobs.Pending {
			e.released++
		} else {
			e.finished++
		}
		if done.InTx && a.outcome.Error != "" && a.outcome.Error != errNotCommitted.Error() {
			e.log.Warn("its function returned an error after it had finished its task", "task", a.task.ID, "err", cut(a.outcome.Error, 200))
		}
		e.logEnd(a, done.Change)
		e.tellEnd(a, done.Change)
		if done.Change.State.Finished() {
			e.r.wake.ended(a.task.ID)
		}
		if done.Change.State == jobs.Failed {
			e.hooks.failed(a.task, done.Change)
		}
	}
}

// stopAll ends the contexts of all attempts and returns how long their ends may take.
func (e *engine) stopAll(cause error, kill bool) time.Duration {
	wait := e.longestEnd()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.running {
		a.stop(cause, kill)
	}
	return wait
}

// longestEnd is how long the attempts that run now may take to end once they are stopped.
func (e *engine) longestEnd() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	wait := stopWait
	for _, a := range e.running {
		wait = max(wait, a.task.KillAfter+stopWait)
	}
	return wait
}

// abandonAll gives up attempts that do not end: functions that ignore their context, since commands are dead by now. Their tasks
// go back; what they still do or return is refused.
func (e *engine) abandonAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.running {
		if a.abandon() {
			e.log.Warn("attempt does not end, given up", "task", a.task.ID, "job", a.task.Job)
			e.unsettled = append(e.unsettled, a)
		}
	}
}

// askedToCancel stops the attempts whose tasks someone wants cancelled.
func (e *engine) askedToCancel(ctx context.Context) {
	if len(e.running) == 0 {
		return
	}
	asked, err := e.worker.Asked(ctx)
	if err != nil {
		e.log.Warn("cannot look for cancel requests", "err", err)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, ask := range asked {
		if a := e.running[ask.ClaimID]; a != nil {
			a.stop(jobs.ErrCancelled, ask.Now)
		}
	}
}

// sweep gives back ghosts every sixth of a lease: tasks that the database says are this worker's and that it does not run, because
// the answer to their claim was lost. It belongs to the loop, so that no claim is under way.
func (e *engine) sweep(ctx context.Context) {
	at := now()
	if at.Sub(e.sweptAt) < e.r.options.Lease/6 {
		return
	}
	e.sweptAt = at
	owned, err := e.worker.Owned(ctx)
	if err != nil {
		return // told by the next write
	}
	ghosts := slices.DeleteFunc(owned, func(c db.ClaimID) bool { return e.running[c] != nil })
	if len(ghosts) == 0 {
		return
	}
	e.log.Warn("giving back tasks whose claim was not answered", "tasks", len(ghosts))
	if err := e.worker.Release(ctx, ghosts, now()); err != nil {
		e.log.Warn("cannot give back tasks", "err", err)
	}
}

// awaitEnds waits a moment for attempts that were killed, so that none is left when Work returns.
func (e *engine) awaitEnds() {
	over := time.After(abortWait)
	for left := len(e.running) - len(e.unsettled); left > 0; left-- {
		select {
		case <-e.ended:
		case <-over:
			return
		}
	}
}
