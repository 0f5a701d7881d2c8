package runner

import (
	"context"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner/internal/cron"
)

const (
	lookEvery  = 100 * time.Millisecond // at most, while others commit
	lookAgain  = time.Second            // after an error, or while a task that is to be replaced still runs
	renewEvery = time.Hour              // next ticks are set anew: a clock that was wrong for a moment may have computed them elsewhere
	setBack    = time.Second            // how far the wall clock must be set back to be noticed
)

// schedules enqueues tasks at the ticks of schedules until ctx ends. Any worker does it, beside its loop, so that a tick is on time
// when all slots are busy. It sleeps until the next tick and is woken by commits; where there is no schedule it costs a query at a
// commit, ten in a second at most.
//
// Ticks follow the wall clock, timers do not: so it looks again at least every sixth of a lease. A clock that is set forward makes
// ticks due, and a schedule's catch-up decides. One that is set back has the next ticks computed anew, or they would lie far ahead;
// those that had their task are not repeated. Retries and rates would lie far ahead, too.
func (e *engine) schedules(ctx, write context.Context, next time.Time) {
	notices, unsubscribe := e.r.notifier.SubscribeWorker(ctx)
	defer unsubscribe()
	looked := now()
	renewed := looked
	for {
		wait := e.r.options.Lease / 6
		if !next.IsZero() {
			wait = min(max(next.Sub(now()), 0)+time.Millisecond, wait)
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-e.stopped:
		case <-timer.C:
		case <-notices:
			timer.Reset(max(min(wait, looked.Add(lookEvery).Sub(now())), 0))
			select {
			case <-ctx.Done():
			case <-e.stopped:
			case <-timer.C:
			}
		}
		timer.Stop()
		select {
		case <-ctx.Done():
			return
		case <-e.stopped:
			return
		default:
		}
		at := now()
		elapsed, shown := at.Sub(looked), at.Round(0).Sub(looked.Round(0)) // without Round by the monotonic clock
		back := shown < elapsed-setBack
		if back {
			e.setBack(write, at)
		}
		all := back || at.Sub(renewed) >= renewEvery
		if all {
			renewed = at
		}
		next = e.tick(write, all)
		looked = at
	}
}

// tick enqueues what is due and returns when to look again; zero: nothing ticks. With all it also sets the next ticks anew.
func (e *engine) tick(ctx context.Context, all bool) time.Time {
	e.ticks.Lock()
	defer e.ticks.Unlock()
	if e.over {
		return time.Time{}
	}
	at := now()
	next, err := e.r.store.NextTick(ctx)
	if err == nil && !all && (next.IsZero() || next.After(at)) {
		return next
	}
	if err == nil {
		done, tickErr := e.r.store.Tick(ctx, at, all, func(s jobs.Schedule) ([]time.Time, time.Time, error) { return cron.Due(s, at) })
		err = tickErr
		changed := false
		for _, one := range done {
			if one.Err != nil {
				e.log.Error("schedule cannot tick", "schedule", one.Schedule.Name, "err", one.Err)
			}
			if one.Skipped > 0 {
				e.log.Warn("tick skipped: an earlier task is unfinished", "schedule", one.Schedule.Name, "ticks", one.Skipped)
			}
			for _, tick := range one.Added {
				e.log.Info("tick", "schedule", one.Schedule.Name, "task", tick.TaskID, "due", tick.At.UTC().Format(time.RFC3339))
			}
			changed = changed || len(one.Added) > 0 || len(one.Waiting) > 0
		}
		if changed {
			e.ticked = true
			e.r.notifier.Notify()
		}
	}
	if err == nil {
		next, err = e.r.store.NextTick(ctx)
	}
	if err != nil {
		e.log.Warn("cannot look at schedules, will try again", "err", err)
		return at.Add(lookAgain)
	}
	if !next.IsZero() && !next.After(at) {
		return at.Add(lookAgain)
	}
	return next
}

// endTicks ends the ticks, unless one has enqueued something since it was last asked: WorkUntilEmpty leaves none of its own ticks behind.
func (e *engine) endTicks() bool {
	e.ticks.Lock()
	defer e.ticks.Unlock()
	e.over, e.ticked = !e.ticked, false
	return e.over
}

// setBack puts right what a clock that was ahead has written, if any was.
func (e *engine) setBack(ctx context.Context, at time.Time) {
	latest, err := e.r.store.Latest(ctx)
	if err != nil || latest.Sub(at) < setBack {
		return // the next ones to look report an error that stays
	}
	n, err := e.r.store.SetBack(ctx, at)
	if err != nil {
		e.log.Warn("cannot put right what a clock that was ahead has written", "err", err)
		return
	}
	e.log.Warn("the clock was set back", "latest", latest, "retries moved", n)
	e.r.notifier.Notify()
}
