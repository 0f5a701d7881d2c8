package engine

import (
	"context"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/usercode"
)

const (
	minTickPause = 100 * time.Millisecond // shortest time between two checks for ticks, while other processes commit
	retryTicks   = time.Second            // pause after an error, or if a tick is still due because the task that it replaces still runs
	realignEvery = time.Hour              // interval at which all next ticks are computed again, in case the clock was wrong before
	minSetBack   = time.Second            // smallest backward step of the wall clock that the scheduler detects
)

// schedule enqueues tasks at the ticks of schedules until ctx ends. Every
// worker runs schedule in a goroutine of its own, so that ticks are on time
// even while all slots are taken. The function sleeps until the next tick, and
// wakes up after commits. Without schedules, its cost is one query after a
// commit, at most ten queries per second.
//
// Ticks follow the wall clock, but timers do not. So schedule compares the next
// tick with the clock at least once per heartbeat interval. If the clock is set
// forward, ticks become due, and the catch-up rules of their schedules decide
// whether they get a task. If the clock is set back, schedule computes all next
// ticks again, because the old ones would be far in the future. It does not
// repeat ticks that already have a task. It also corrects the times of retries
// and rate limits.
func (e *Engine) schedule(ctx, write context.Context, next time.Time) {
	notices, unsubscribe := e.store.SubscribeWorker(ctx)
	defer unsubscribe()

	checked := now()
	realigned, alerted := checked, checked
	for {
		if e.waitForTick(ctx, notices, next, checked); ctx.Err() != nil {
			return
		}

		at := now()
		elapsed, shown := at.Sub(checked), at.Round(0).Sub(checked.Round(0)) // Round(0) removes the monotonic part of a time
		back := shown < elapsed-minSetBack
		if back {
			e.setBack(write, at)
		}

		all := back || at.Sub(realigned) >= realignEvery
		if all {
			realigned = at
		}

		next = e.tick(write, all)
		if at.Sub(alerted) >= e.o.beatEvery() {
			alerted = at
			e.alert(write)
		}

		checked = at
	}
}

// waitForTick waits for the next tick (zero for none), for a notice, or for the
// end of ctx, but at most for the interval of heartbeats. After a notice it
// still waits until minTickPause has passed since the last check for ticks, but
// not beyond the next tick.
func (e *Engine) waitForTick(ctx context.Context, notices <-chan struct{}, next, checked time.Time) {
	wait := e.o.beatEvery()
	if !next.IsZero() {
		wait = min(max(next.Sub(now()), 0)+time.Millisecond, wait)
	}

	timer := time.NewTimer(wait)
	defer timer.Stop()

	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-notices:
		timer.Reset(max(min(wait, checked.Add(minTickPause).Sub(now())), 0))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
	}
}

// tick enqueues the tasks of all due ticks; with all, it also computes the next
// ticks of all schedules again. It returns the time of its next call, or zero
// if no schedule has a next tick.
func (e *Engine) tick(ctx context.Context, all bool) time.Time {
	e.schedulerMu.Lock()
	defer e.schedulerMu.Unlock()

	if e.ticksEnded {
		return time.Time{}
	}

	at := now()
	next, err := e.store.NextTick(ctx, e.notOurs)
	if err == nil && !all && (next.IsZero() || next.After(at)) {
		return next
	}
	if err == nil {
		done, tickErr := e.enqueueTicks(ctx, at, all)
		err = tickErr
		if e.logTicks(done) {
			e.ticked = true
			e.store.Notify()
		}
	}
	if err == nil {
		next, err = e.store.NextTick(ctx, e.notOurs)
	}
	if err != nil {
		e.log.Warn("cannot read schedules, will try again", "err", err)
		return at.Add(retryTicks)
	}
	if !next.IsZero() && !next.After(at) {
		return at.Add(retryTicks)
	}

	return next
}

// alert enqueues the hooks for the new alerts of schedules, and logs these
// alerts.
func (e *Engine) alert(ctx context.Context) {
	alerts, err := e.worker.Alert(ctx, now())
	if err != nil {
		e.log.Warn("cannot check the alerts of schedules, will try again", "err", err)
	}
	for _, s := range alerts {
		e.log.Warn("schedule is late", "schedule", s.Name, "task", s.LastTaskID)
	}

	if len(alerts) > 0 {
		e.store.Notify()
	}
}

// logTicks logs the results of ticks. It reports whether a tick has added a
// task, or will add one later.
func (e *Engine) logTicks(done []db.Ticked) (changed bool) {
	for _, one := range done {
		if one.Err != nil {
			e.log.Error("schedule cannot tick", append([]any{"schedule", one.Schedule.Name}, usercode.LogArgs(one.Err)...)...)
		}
		if one.Skipped > 0 {
			e.log.Warn("tick skipped: an earlier task is unfinished", "schedule", one.Schedule.Name, "ticks", one.Skipped)
		}
		if one.Declined > 0 {
			e.log.Info("tick skipped by its function", "schedule", one.Schedule.Name, "ticks", one.Declined)
		}

		for _, tick := range one.Added {
			e.log.Info("tick", "schedule", one.Schedule.Name, "task", tick.TaskID, "due", tick.At.UTC().Format(time.RFC3339))
		}

		changed = changed || len(one.Added) > 0 || len(one.Waiting) > 0
	}
	return changed
}

// endTicks returns true if Work with UntilEmpty can return. The engine then
// ignores all further ticks. If a tick has enqueued a task since the last call,
// endTicks returns false, because Work with UntilEmpty has to run that task
// first.
func (e *Engine) endTicks() bool {
	e.schedulerMu.Lock()
	defer e.schedulerMu.Unlock()
	e.ticksEnded, e.ticked = !e.ticked, false
	return e.ticksEnded
}

// setBack corrects times in the database that are in the future because a clock
// was ahead.
func (e *Engine) setBack(ctx context.Context, at time.Time) {
	latest, err := e.store.MaxTimestamp(ctx)
	if err != nil || latest.Sub(at) < minSetBack {
		return // this error is not logged: if it lasts, later reads report it
	}

	n, err := e.store.SetBack(ctx, at)
	if err != nil {
		e.log.Warn("cannot correct the times that a fast clock has written", "err", err)
		return
	}

	e.log.Warn("the clock was set back", "latest", latest, "retries moved", n)
	e.store.Notify()
}
