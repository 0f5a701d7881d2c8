package engine

import (
	"context"
	"runtime"
	"slices"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// One goroutine runs the loop. Only the loop claims tasks, starts attempts and
// writes their outcomes, so loopState needs no lock. The loop doesn't poll the
// table of tasks. It waits until an attempt ends, until a notice says that the
// database may have changed, or until the first of its wake times (sleep).
//
// The invariants:
//
//   - At most WorkOptions.Concurrency attempts run or wait until their outcome is
//     written. A batch counts as one attempt. While a suspect runs, no other
//     attempt runs.
//   - An attempt stays in Engine.running until its outcome is written. Until
//     then heartbeats renew its lease.
//   - After a failed write the loop writes the same outcomes again, but not
//     before a pause (postpone).
//   - After a cycle that scans, nextDue, nextStart and nextLane are correct for
//     everything that was committed before that cycle. A notice of a later
//     commit sets changed, and the next cycle with a free slot scans again.
//
// A read of the database at each notice would take 5 % of a busy worker's time.
// So a worker without a free slot reads at intervals (readEvery).

const (
	firstBackoff = 20 * time.Millisecond // length of the first pause after an error
	maxBackoff   = 2 * time.Second
	abortWait    = 700 * time.Millisecond // longest time that the loop waits for killed attempts to end, before it abandons them

	// stopWait is the longest time that an attempt may need to end after its
	// context has ended or its command was killed.
	stopWait = 5 * time.Second
)

// loop runs until the worker ends. Each iteration runs one cycle, or waits.
func (e *Engine) loop(ctx, write, aborted context.Context, notices <-chan struct{}) error {
	e.look()
	e.logReady()
	for {
		if err := e.failed(); unusable(err) {
			e.log.Error("the worker cannot continue", "err", err)
			e.awaitEnds()
			return err
		}

		e.advance(ctx, write, aborted)
		e.reportLiveness(write)
		e.releasePrefetched()
		if e.changed && e.free() > 0 {
			e.look()
		}

		// A cycle is necessary even without a free slot when a scheduled task
		// is due or a task expires, because the cycle changes their states.
		if !e.postponed() && e.due() && !e.isCollecting() {
			if err := e.cycle(write); err != nil {
				e.giveUp(err)
				e.awaitEnds()
				return err
			}
			continue // the next cycle may be due already
		}

		if e.idle() && (e.ending() || e.o.UntilEmpty && !e.postponed() && !e.isDue() && !e.rateLimited()) {
			switch {
			case aborted.Err() != nil:
				return jobs.ErrShutdown
			case e.ending() || e.foundEmpty && e.endTicks():
				return e.failed()
			}

			e.look() // the loop knows of no due task, but it scans once more before the worker ends
			continue
		}

		e.store.SetBusy(e.free() <= 0)
		e.await(ctx, aborted, notices)
		e.cancelRequested(write)
		e.releaseUnacknowledged(write)
	}
}

// await waits for an event or for the first wake time.
func (e *Engine) await(ctx, aborted context.Context, notices <-chan struct{}) {
	var end, fail, abort <-chan struct{}
	if e.phase == working {
		end, fail = ctx.Done(), e.failing.Done()
	}
	if e.phase < killing {
		abort = aborted.Done()
	}

	timer := time.NewTimer(e.sleep())
	defer timer.Stop()

	select {
	case a := <-e.ended:
		e.collect(a)
	case <-notices:
		e.changed = true
		if e.cancelDueAt.IsZero() && len(e.running) > 0 { // there may be a new request
			e.cancelDueAt = e.cancelReadAt.Add(readEvery)
		}
	case <-timer.C:
		e.look()
	case <-end:
	case <-fail:
	case <-abort:
	}
}

// look makes the next cycle scan the database and claim tasks.
func (e *Engine) look() { e.scan, e.claimMore = true, true }

// due reports whether a cycle has something to write, or may find something to
// claim.
func (e *Engine) due() bool {
	return len(e.unwritten) > 0 || !e.ending() && (e.claimMore && e.free() > 0 || e.isReached())
}

// isCollecting reports whether the next cycle waits, so that more outcomes and
// claims share its transaction. It waits until WriteEvery has passed since the
// last cycle that wrote outcomes or claimed tasks, unless tasks may be left to
// claim (backlog) or the worker ends. With UntilEmpty it doesn't wait while no
// attempt runs. The outcome of a task that must not run twice is written at
// once. So is a suspect's, because no other task can run before that write.
func (e *Engine) isCollecting() bool {
	switch {
	case e.o.WriteEvery == 0, e.ending(), e.backlog, now().Sub(e.wroteAt) >= e.o.WriteEvery:
		return false
	case e.o.UntilEmpty && len(e.running) == len(e.unwritten):
		return false
	}
	return !slices.ContainsFunc(e.unwritten, func(a *attempt) bool {
		return a.task.MaxLosses == 0 || taskspec.Suspect(a.task)
	})
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
	return e.claimMore || e.changed || e.diskFull || e.isReached()
}

// isReached reports whether a scheduled task that the loop knows is due, or
// whether it's time to check for space on the disk.
func (e *Engine) isReached() bool {
	at := now()
	return !e.nextDue.IsZero() && !e.nextDue.After(at) || e.diskFull && !e.diskCheckAt.After(at)
}

// rateLimited reports whether a due task can't start yet, such as for a rate
// limit.
func (e *Engine) rateLimited() bool { return !e.nextStart.IsZero() || !e.nextLane.IsZero() }

// postponed reports whether it's too early for the next cycle.
func (e *Engine) postponed() bool { return now().Before(e.postponedTill) }

// postpone delays the next cycle by d.
func (e *Engine) postpone(d time.Duration) { e.postponedTill = now().Add(d) }

// sleep returns how long the loop waits if no event comes: until the first of
// its wake times.
func (e *Engine) sleep() time.Duration {
	wait := e.untilCycle()
	for _, at := range []time.Time{e.releaseAt(), e.cancelDueAt, e.livenessAt, e.phaseEnd} {
		if !at.IsZero() {
			wait = min(wait, max(at.Sub(now()), 0))
		}
	}
	return wait
}

// untilCycle returns the time until the next cycle.
func (e *Engine) untilCycle() time.Duration {
	switch {
	case e.postponed():
		return e.postponedTill.Sub(now())
	case e.ending():
		return e.o.beatEvery()
	case e.due() && e.isCollecting():
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

	// The extra millisecond is needed because times in the database are rounded
	// to milliseconds. If the wall clock jumps, the worker wakes too late, but
	// never later than after beatEvery.
	return min(max(next.Sub(now()), 0)+time.Millisecond, e.o.beatEvery())
}

// Attempts that end at nearly the same time share a transaction. After an
// attempt has ended, the loop polls for more. It stops after collectPolls polls
// in a row that find none (some microseconds), and in any case after
// collectTimeout.
const (
	collectPolls   = 100
	collectTimeout = time.Millisecond
)

// collect receives an ended attempt, and those that end soon after it. The next
// cycle writes all of them in one transaction. If ten short functions run at
// once, this increases the average from seven attempts per transaction to nine,
// and the worker empties a queue a tenth faster.
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
