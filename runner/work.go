package runner

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"example.com/runner/db"
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
	if err := r.sound(ctx); err != nil {
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
	e, err := r.enter(ctx, aborted.Done(), untilEmpty)
	if e == nil {
		return err
	}
	r.notifier.SetBrief(untilEmpty)
	r.mu.Lock()
	r.abort = func() {
		abort()
		e.stopAll(jobs.ErrShutdown, true) // here too: the loop may be waiting for a lock
	}
	r.mu.Unlock()
	return e.run(ctx, aborted.Done())
}

// enter makes the engine of a Work. On a disk that is full it waits until there is room; nil without an error: it was ended before.
func (r *Runner) enter(ctx context.Context, aborted <-chan struct{}, untilEmpty bool) (*engine, error) {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		e, err := r.newEngine(ctx, untilEmpty)
		if !errors.Is(err, jobs.ErrFull) {
			return e, err
		}
		if pause == firstPause {
			r.log.Error("nothing is started until the disk has room", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil, nil
		case <-aborted:
			return nil, jobs.ErrShutdown
		case <-time.After(pause):
		}
	}
}

// loop is a Work until nothing runs any more. Each round does one thing, or waits for the first of what may happen.
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
		if e.changed && e.free() > 0 {
			e.look, e.more = true, true
		}
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
			if stopping || e.empty && e.endTicks() {
				return e.verdict(aborted)
			}
			e.look, e.more = true, true // nothing is known to be due: look once more before believing it
			continue
		}
		e.r.notifier.SetBusy(e.free() <= 0)
		timer := time.NewTimer(e.untilPulse(e.untilAsked(e.sleep(stopping))))
		select {
		case a := <-e.ended:
			e.collect(a)
		case <-notices:
			e.changed, e.more = true, true
			e.noticed()
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
		e.askedToCancel(write)
		e.sweep(write)
	}
}

const (
	firstPause   = 20 * time.Millisecond  // after an error
	longestPause = 2 * time.Second        //
	abortWait    = 700 * time.Millisecond // for killed attempts to end before they are given up
	stopWait     = 5 * time.Second        // beyond the longest kill_after
)

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

// Attempts that end within a moment share a transaction: it is given up after so many looks in a row that found nothing, some microseconds,
// or after so long in all.
const (
	collectLooks   = 100
	collectLongest = time.Millisecond
)

// collect takes an attempt that has ended, and those that end within a moment. With ten short functions at once that makes nine a turn of
// seven, and a drain a tenth faster.
func (e *engine) collect(a *attempt) {
	e.unsettled = append(e.unsettled, a)
	began := now()
	for looks := 0; looks < collectLooks && len(e.unsettled) < len(e.running); looks++ {
		select {
		case a := <-e.ended:
			e.unsettled = append(e.unsettled, a)
			looks = 0
		default:
			if now().Sub(began) > collectLongest { // functions that only compute keep the others waiting
				return
			}
			runtime.Gosched()
		}
	}
}

// askEvery is the least time between two looks of a busy worker for what others have changed: for cancel requests, and, while all slots are
// taken, for what has become due and for new queues. In full swing, a look at each notice was a twentieth of its work.
const askEvery = 20 * time.Millisecond

// noticed says that there may be a cancel request to look for.
func (e *engine) noticed() {
	if e.askAt.IsZero() && len(e.running) > 0 {
		e.askAt = e.askedAt.Add(askEvery)
	}
}

// untilAsked shortens a sleep so that the next look for cancel requests is not missed.
func (e *engine) untilAsked(d time.Duration) time.Duration {
	if e.askAt.IsZero() {
		return d
	}
	return min(d, max(e.askAt.Sub(now()), 0))
}

// askedToCancel stops the attempts whose tasks someone wants cancelled, when it is time to look.
func (e *engine) askedToCancel(ctx context.Context) {
	at := now()
	if e.askAt.IsZero() || at.Before(e.askAt) {
		return
	}
	e.askAt, e.askedAt = time.Time{}, at
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
