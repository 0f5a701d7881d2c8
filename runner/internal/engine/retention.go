package engine

import (
	"context"
	"time"

	"example.com/runner/db"
)

const (
	maxRetainEvery = 10 * time.Minute // between two rounds; rounds are more frequent if tasks are kept for a short time
	minRetainEvery = time.Minute
	retainPause    = 20 * time.Millisecond // at least, between two transactions
	upkeepEvery    = time.Hour             // between two upkeeps, each of which also looks at all tasks
	keepMinutes    = 48 * time.Hour        // counters by the minute, before they are summed up by the hour
	keepHours      = 366 * 24 * time.Hour  // counters by the hour
	keepWorkers    = 30 * 24 * time.Hour   // at least, since tasks show the names of their workers
)

// retain deletes what is old, until the loop is over: finished tasks, workers that ended long ago, and counters, which it sums up by the
// hour. It deletes tasks in small transactions, and after each one leaves the write lock to others for as long as the transaction took.
// While nothing runs it returns free space of the file to the system. A worker that runs only for a moment begins with this, too.
func (e *Engine) retain() {
	ctx := context.Background()
	var from, upkeep time.Time
	for {
		e.watchClock(ctx)
		at := now()
		asOf, present := e.deleteAsOf(ctx, at.Round(0))
		if present && (at.Sub(upkeep) >= upkeepEvery || at.Before(upkeep)) {
			upkeep, from = at, time.Time{}
			e.upkeep(ctx, at)
		}
		more, failed := !asOf.IsZero(), false
		for more && !failed {
			began := now()
			done, err := e.store.Prune(ctx, e.o.prune(asOf, from))
			if err != nil {
				e.log.Warn("cannot delete old tasks", "err", err)
			}
			from, more, failed = done.From, done.More, err != nil
			if more && !e.waitFor(max(retainPause, now().Sub(began))) {
				return
			}
		}
		for more = !failed; more && e.nothingRuns(); {
			var err error
			if more, err = e.store.Vacuum(ctx); err != nil || !e.waitFor(retainPause) {
				break
			}
		}
		if !e.waitFor(e.o.retainEvery()) {
			return
		}
	}
}

// retainEvery returns the interval between two rounds. Tasks that are kept for long may stay a little longer.
func (o *Options) retainEvery() time.Duration {
	every := maxRetainEvery
	for _, keep := range []time.Duration{o.Keep, o.KeepFailed} {
		if keep > 0 {
			every = min(every, max(keep/60, minRetainEvery))
		}
	}
	return every
}

// prune returns which tasks to delete at a time.
func (o *Options) prune(at, from time.Time) db.Prune {
	p := db.Prune{From: from}
	if o.Keep > 0 {
		p.Before = at.Add(-o.Keep)
	}
	if o.KeepFailed > 0 {
		p.FailedBefore = at.Add(-o.KeepFailed)
	}
	return p
}

// upkeep sums up old counters and deletes old workers.
func (e *Engine) upkeep(ctx context.Context, at time.Time) {
	if err := e.store.RollUp(ctx, at.Add(-keepMinutes), at.Add(-keepHours)); err != nil {
		e.log.Warn("cannot sum up counters", "err", err)
	}
	keep := max(keepWorkers, e.o.Keep, e.o.KeepFailed)
	if e.o.Keep < 0 || e.o.KeepFailed < 0 {
		keep = max(keep, keepHours)
	}
	if err := e.store.PruneWorkers(ctx, at.Add(-keep)); err != nil {
		e.log.Warn("cannot delete old workers", "err", err)
	}
}

func (e *Engine) nothingRuns() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.running) == 0
}
