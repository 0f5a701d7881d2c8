package engine

import (
	"context"
	"runtime"
	"time"

	"example.com/runner/jobs"
)

// One goroutine runs the loop. Only the loop claims tasks, starts attempts and writes their ends, so loopState needs no lock. The loop does
// not poll the table of tasks. It waits for the first of these events: an attempt ends, a notice says that the database may have changed,
// the next known task is due, or the work is to end.
//
// The invariants:
//
//   - At most Options.Concurrency attempts run or wait until their end is written. No attempt runs beside a suspect.
//   - An attempt stays in Engine.running until its end is written. Until then heartbeats renew its lease.
//   - After a failed write the loop writes the same ends again, but not before a pause (postpone).
//   - A cycle that scans leaves nextDue, nextStart and nextLane correct for everything that was committed before it. A notice of a later
//     commit sets changed, and the next cycle with a free slot scans again.
//
// A read of the database at each notice was tried. It took a twentieth of the time of a busy worker, so a worker without a free slot reads
// at intervals (readEvery).

const (
	firstBackoff = 20 * time.Millisecond // first pause after an error
	maxBackoff   = 2 * time.Second
	abortWait    = 700 * time.Millisecond // time in which killed attempts may end before they are abandoned

	// stopWait is how long an attempt may take to end after its command was killed.
	stopWait = 5 * time.Second
)

// loop works until nothing runs any more. Each round does one thing, or waits for the first event.
func (e *Engine) loop(ctx, write context.Context, notices, aborted <-chan struct{}) error {
	var grace, abandon <-chan time.Time
	draining, failing := ctx.Done(), e.failing
	stopping := false // nothing starts any more
	e.scan, e.claimMore = true, true
	e.logReady()
	for {
		if err := e.failed(); unusable(err) {
			e.log.Error("the worker cannot continue", "err", err)
			e.awaitEnds()
			return err
		}
		if !stopping && (ctx.Err() != nil || e.failed() != nil) {
			stopping, draining, failing = true, nil, nil
			grace = e.beginDrain(write)
		}
		e.reportLiveness(write, stopping)
		if e.changed && e.free() > 0 {
			e.scan, e.claimMore = true, true
		}
		// Without a free slot, too, scheduled tasks must become pending in time, and tasks must expire.
		if !e.postponed() && (len(e.unwritten) > 0 || !stopping && (e.claimMore && e.free() > 0 || e.reached())) {
			if err := e.cycle(write, stopping); err != nil {
				e.giveUp(err)
				e.awaitEnds()
				return err
			}
			continue // slots may be free now, and other attempts may have ended
		}
		if e.idle() && (stopping || e.o.UntilEmpty && !e.postponed() && !e.isDue() && !e.rateLimited()) {
			if stopping || e.foundEmpty && e.endTicks() {
				return e.result(aborted)
			}
			e.scan, e.claimMore = true, true // the loop knows of no due task: scan once more before it ends
			continue
		}
		e.o.Notifier.SetBusy(e.free() <= 0)
		timer := time.NewTimer(e.untilLiveness(e.untilCancelRead(e.sleep(stopping))))
		select {
		case a := <-e.ended:
			e.collect(a)
		case <-notices:
			e.changed, e.claimMore = true, true
			e.planCancelRead()
		case <-timer.C:
			e.scan, e.claimMore = true, true
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
		e.cancelRequested(write)
		e.releaseUnacknowledged(write)
	}
}

// free returns the number of free slots. A running suspect takes all slots.
func (e *Engine) free() int {
	if e.suspects > 0 {
		return 0
	}
	return e.o.Concurrency - len(e.running)
}

// idle reports whether nothing runs and nothing is to be written.
func (e *Engine) idle() bool { return len(e.running) == 0 && len(e.unwritten) == 0 }

// isDue reports whether a cycle may find a task to start now or soon.
func (e *Engine) isDue() bool { return e.claimMore || e.diskFull != nil || e.reached() }

// reached reports whether a scheduled task that the loop knows of is due, or whether it is time to check the disk for room.
func (e *Engine) reached() bool {
	at := now()
	return !e.nextDue.IsZero() && !e.nextDue.After(at) || e.diskFull != nil && !e.diskCheckAt.After(at)
}

// rateLimited reports whether a due task waits for a rate limit only.
func (e *Engine) rateLimited() bool { return !e.nextStart.IsZero() || !e.nextLane.IsZero() }

// postponed reports whether it is too early for the next cycle.
func (e *Engine) postponed() bool { return now().Before(e.postponedTill) }

// postpone puts the next cycle off.
func (e *Engine) postpone(d time.Duration) { e.postponedTill = now().Add(d) }

// sleep returns how long the loop has nothing to do if no event comes.
func (e *Engine) sleep(stopping bool) time.Duration {
	switch {
	case e.postponed():
		return e.postponedTill.Sub(now())
	case stopping:
		return e.o.beatEvery()
	case e.diskFull != nil:
		return max(e.diskCheckAt.Sub(now()), 0)
	}
	next := e.nextDue
	if e.free() > 0 && !e.nextStart.IsZero() && (next.IsZero() || e.nextStart.Before(next)) {
		next = e.nextStart
	}
	if next.IsZero() {
		return e.o.beatEvery()
	}
	// Times in the file are whole milliseconds. The limit bounds the delay that a jump of the wall clock causes.
	return min(max(next.Sub(now()), 0)+time.Millisecond, e.o.beatEvery())
}

// Attempts that end at nearly the same time share a transaction. The loop stops waiting for more of them after collectPolls polls in a
// row without one, which are some microseconds, or after collectTimeout in all.
const (
	collectPolls   = 100
	collectTimeout = time.Millisecond
)

// collect takes an attempt that has ended, and the attempts that end soon after. With ten short functions at once it takes nine attempts
// into a cycle instead of seven, and a drain is a tenth faster.
func (e *Engine) collect(a *attempt) {
	e.unwritten = append(e.unwritten, a)
	began := now()
	for polls := 0; polls < collectPolls && len(e.unwritten) < len(e.running); polls++ {
		select {
		case a := <-e.ended:
			e.unwritten = append(e.unwritten, a)
			polls = 0
		default:
			if now().Sub(began) > collectTimeout { // functions that only compute would keep the ended attempts waiting
				return
			}
			runtime.Gosched()
		}
	}
}
