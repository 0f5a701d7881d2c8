package runner

import (
	"context"
	"time"

	"example.com/runner/db"
)

const (
	retainMost  = 10 * time.Minute // between two looks for tasks to forget; with short times to keep them, less
	retainLeast = time.Minute
	retainRest  = 20 * time.Millisecond // at least, between two transactions of it
	upkeepEvery = time.Hour             // counters, workers, and a look at all tasks
	minutesKept = 48 * time.Hour        // of counters, before they are summed up by the hour
	hoursKept   = 366 * 24 * time.Hour
	workersKept = 30 * 24 * time.Hour // at least: their names are shown with the tasks that they ran
)

// retain forgets what is old, until the loop is over: finished tasks, in small transactions that leave the lock to others for as long
// as they took; workers of long ago; counters, which are summed up by the hour instead. While nothing runs it gives free space of
// the file back. A worker that only lives for a moment does a little of it, too.
func (e *engine) retain() {
	ctx := context.Background()
	var from, upkeep time.Time
	for {
		e.watchClock(ctx)
		at := now()
		asOf, present := e.deleteAsOf(ctx, at.Round(0))
		if present && (at.Sub(upkeep) >= upkeepEvery || at.Before(upkeep)) {
			upkeep, from = at, time.Time{}
			e.keepUp(ctx, at)
		}
		more, failed := !asOf.IsZero(), false
		for more && !failed {
			began := now()
			done, err := e.r.store.Prune(ctx, e.r.prune(asOf, from))
			if err != nil {
				e.log.Warn("cannot forget old tasks", "err", err)
			}
			from, more, failed = done.From, done.More, err != nil
			if more && !e.pauseOf(max(retainRest, now().Sub(began))) {
				return
			}
		}
		for more = !failed; more && e.nothingRuns(); {
			var err error
			if more, err = e.r.store.Vacuum(ctx); err != nil || !e.pauseOf(retainRest) {
				break
			}
		}
		if !e.pauseOf(e.r.options.retainEvery()) {
			return
		}
	}
}

// retainEvery is how long to wait between two looks: what is to be kept for long may be kept a little longer.
func (o Options) retainEvery() time.Duration {
	every := retainMost
	for _, keep := range []time.Duration{o.Keep, o.KeepFailed} {
		if keep > 0 {
			every = min(every, max(keep/60, retainLeast))
		}
	}
	return every
}

// prune is what to forget at a time.
func (r *Runner) prune(at, from time.Time) db.Prune {
	p := db.Prune{From: from}
	if keep := r.options.Keep; keep > 0 {
		p.Before = at.Add(-keep)
	}
	if keep := r.options.KeepFailed; keep > 0 {
		p.FailedBefore = at.Add(-keep)
	}
	return p
}

func (e *engine) keepUp(ctx context.Context, at time.Time) {
	if err := e.r.store.RollUp(ctx, at.Add(-minutesKept), at.Add(-hoursKept)); err != nil {
		e.log.Warn("cannot sum up counters", "err", err)
	}
	kept := max(workersKept, e.r.options.Keep, e.r.options.KeepFailed)
	if e.r.options.Keep < 0 || e.r.options.KeepFailed < 0 {
		kept = max(kept, hoursKept)
	}
	if err := e.r.store.PruneWorkers(ctx, at.Add(-kept)); err != nil {
		e.log.Warn("cannot forget old workers", "err", err)
	}
}

func (e *engine) nothingRuns() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.running) == 0
}
