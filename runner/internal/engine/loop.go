package engine

import (
	"context"
	"runtime"
	"slices"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// One goroutine runs the loop. Only the loop claims tasks, starts attempts and writes their outcomes, so loopState needs no lock. The loop
// does not poll the table of tasks. It waits for the first of these events: an attempt ends, a notice arrives because the database may have
// changed, the next known task is due, or the worker has to end.
//
// The invariants:
//
//   - At most Options.Concurrency attempts run or wait until their outcome is written. A batch counts as one attempt.
//     While a suspect runs, no other attempt runs.
//   - An attempt stays in Engine.running until its outcome is written. Until then heartbeats renew its lease.
//   - After a failed write the loop writes the same outcomes again, but not before a pause (postpone).
//   - After a cycle that scans, nextDue, nextStart and nextLane are correct for everything that was committed before that cycle. A notice
//     of a later commit sets the field "changed", and the next cycle with a free slot scans again.
//
// A read of the database at each notice would take 5 % of the time of a busy worker. So a worker without a free slot reads at intervals
// (readEvery).

const (
	firstBackoff = 20 * time.Millisecond // length of the first pause after an error
	maxBackoff   = 2 * time.Second
	abortWait    = 700 * time.Millisecond // longest time that the loop waits for killed attempts to end, before it abandons them

	// stopWait is the longest time that an attempt may need to end after its context has ended or its command was killed.
	stopWait = 5 * time.Second
)

// loop runs until the worker ends. Each iteration runs one cycle, or waits for the first event.
func (e *Engine) loop(ctx, write context.Context, notices, aborted <-chan struct{}) error {
	var grace, abandon, report <-chan time.Time
	draining, failing, aborting := ctx.Done(), e.failing.Done(), aborted
	stopping := false // whether the loop starts nothing more
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
		e.releasePrefetched(stopping)
		if e.changed && e.free() > 0 {
			e.scan, e.claimMore = true, true
		}
		// A cycle is necessary even without a free slot when a scheduled task is due or a task expires, because the cycle changes their
		// states.
		if !e.postponed() && e.due(stopping) && !e.collecting(stopping) {
			if err := e.cycle(write, stopping); err != nil {
				e.giveUp(err)
				e.awaitEnds()
				return err
			}
			continue // do not wait for an event: the next cycle may be due already
		}
		if e.idle() && (stopping || e.o.UntilEmpty && !e.postponed() && !e.isDue() && !e.rateLimited()) {
			if stopping || e.foundEmpty && e.endTicks() {
				return e.result(aborted)
			}
			e.scan, e.claimMore = true, true // the loop knows of no due task, but it scans once more before the worker ends
			continue
		}
		e.store.SetBusy(e.free() <= 0)
		timer := time.NewTimer(e.sleep(stopping))
		select {
		case a := <-e.ended:
			e.collect(a)
		case <-e.progressed:
			if report == nil {
				report = time.After(reportEvery)
			}
		case <-report:
			report = nil
			e.storeReports(write)
		case <-notices:
			e.changed, e.claimMore = true, true
			if e.cancelDueAt.IsZero() && len(e.running) > 0 { // there may be a new request
				e.cancelDueAt = e.cancelReadAt.Add(readEvery)
			}
		case <-timer.C:
			e.scan, e.claimMore = true, true
		case <-draining:
		case <-failing:
		case <-grace:
			grace = nil
			abandon = time.After(e.stopAll(jobs.ErrShutdown, false))
		case <-aborting:
			aborting, grace = nil, nil
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

// due reports whether a cycle has something to write, or may find something to claim.
func (e *Engine) due(stopping bool) bool {
	return len(e.unwritten) > 0 || !stopping && (e.claimMore && e.free() > 0 || e.reached())
}

// collecting reports whether the next cycle waits, so that more outcomes and claims share its transaction. It waits until WriteEvery has
// passed since the last cycle that wrote outcomes or claimed tasks. It does not wait if tasks may be left to claim (backlog), or if the
// worker ends. With UntilEmpty it does not wait while no attempt runs. The outcome of a task that must not run twice is written at once. So
// is the outcome of a suspect, because no other task can run before that write.
func (e *Engine) collecting(stopping bool) bool {
	if e.o.WriteEvery == 0 || stopping || e.backlog || now().Sub(e.wroteAt) >= e.o.WriteEvery {
		return false
	}
	if e.o.UntilEmpty && len(e.running) == len(e.unwritten) {
		return false
	}
	return !slices.ContainsFunc(e.unwritten, func(a *attempt) bool { return a.task.MaxLosses == 0 || taskspec.Suspect(a.task) })
}

// free returns the number of free slots. While a suspect runs, no slot is free.
func (e *Engine) free() int {
	if e.suspects > 0 {
		return 0
	}
	return e.o.Concurrency - e.used()
}

// idle reports whether no attempt runs, and all outcomes are written.
func (e *Engine) idle() bool { return len(e.running) == 0 && len(e.unwritten) == 0 }

// isDue reports whether a cycle may find a task to start now or soon.
func (e *Engine) isDue() bool {
	return e.claimMore || e.diskFull || e.reached()
}

// reached reports whether a scheduled task that the loop knows is due, or whether it is time to check for space on the disk.
func (e *Engine) reached() bool {
	at := now()
	return !e.nextDue.IsZero() && !e.nextDue.After(at) || e.diskFull && !e.diskCheckAt.After(at)
}

// rateLimited reports whether a due task cannot start yet, for example because of a rate limit.
func (e *Engine) rateLimited() bool { return !e.nextStart.IsZero() || !e.nextLane.IsZero() }

// postponed reports whether it is too early for the next cycle.
func (e *Engine) postponed() bool { return now().Before(e.postponedTill) }

// postpone delays the next cycle by d.
func (e *Engine) postpone(d time.Duration) { e.postponedTill = now().Add(d) }

// sleep returns how long the loop waits if no event comes: until the first of
// the times at which it has something to do.
func (e *Engine) sleep(stopping bool) time.Duration {
	wait := e.untilCycle(stopping)
	for _, at := range []time.Time{e.releaseAt(), e.cancelDueAt, e.livenessAt} {
		if !at.IsZero() {
			wait = min(wait, max(at.Sub(now()), 0))
		}
	}
	return wait
}

// untilCycle returns the time until the next cycle.
func (e *Engine) untilCycle(stopping bool) time.Duration {
	switch {
	case e.postponed():
		return e.postponedTill.Sub(now())
	case stopping:
		return e.o.beatEvery()
	case e.due(false) && e.collecting(false):
		return e.o.WriteEvery - now().Sub(e.wroteAt)
	case e.diskFull:
		return max(e.diskCheckAt.Sub(now()), 0)
	}
	next := e.nextDue
	if e.free() > 0 && !e.nextStart.IsZero() && (next.IsZero() || e.nextStart.Before(next)) {
		next = e.nextStart
	}
	if next.IsZero() {
		return e.o.beatEvery()
	}
	// The extra millisecond is needed because times in the database are rounded to milliseconds. If the wall clock jumps, the worker wakes
	// too late, but never later than after beatEvery.
	return min(max(next.Sub(now()), 0)+time.Millisecond, e.o.beatEvery())
}

// Attempts that end at nearly the same time share a transaction. After an attempt has ended, the loop polls for further ended attempts. It
// stops after collectPolls polls in a row that find none, which takes some microseconds, and in any case after collectTimeout.
const (
	collectPolls   = 100
	collectTimeout = time.Millisecond
)

// collect adds an ended attempt to e.unwritten, and the attempts that end soon after it. The next cycle writes all of them in one
// transaction. If ten short functions run at once, collect increases the average from seven attempts per transaction to nine, and the
// worker empties a queue a tenth faster.
func (e *Engine) collect(a *attempt) {
	e.receive(a)
	began := now()
	for polls := 0; polls < collectPolls && len(e.unwritten) < len(e.running); polls++ {
		select {
		case a := <-e.ended:
			e.receive(a)
			polls = 0
		default:
			if now().Sub(began) > collectTimeout { // without this limit, functions that keep the CPU busy would delay the write
				return
			}
			runtime.Gosched()
		}
	}
}
