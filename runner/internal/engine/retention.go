package engine

import (
	"context"
	"time"

	"example.com/runner/db"
)

const (
	maxRetainEvery = 10 * time.Minute      // longest interval between two searches for old tasks (retainEvery)
	minRetainEvery = time.Minute           // shortest interval between two searches; used if tasks are kept for an hour or less
	retainPause    = 20 * time.Millisecond // shortest pause between two transactions that delete old records
	upkeepEvery    = time.Hour             // interval at which upkeep runs; the search for old tasks then starts again at the oldest task
	keepMinutes    = 48 * time.Hour        // age at which counters of minutes are added up to counters of hours
	keepHours      = 366 * 24 * time.Hour  // age at which counters of hours are deleted
	keepWorkers    = 30 * 24 * time.Hour   // records of workers are kept at least this long, because lists of tasks name the workers
)

// retain deletes old records at intervals until the loop ends: finished tasks,
// records of workers that ended long ago, and counters, after adding them up by
// the hour. It does so in small transactions, and pauses for as long as each of
// them took, so that others can write. While no task runs, it returns free
// space of the file to the system. It begins at once, so even a worker that
// runs for a short time deletes old tasks.
func (e *Engine) retain() {
	ctx := context.Background()
	var upkeep time.Time
	kinds := []db.Prune{{}, {Failed: true}, {Kept: true}}
	for {
		e.watchClock(ctx)
		at := now()
		asOf, present := e.deleteAsOf(ctx, at.Round(0))
		if present && (at.Sub(upkeep) >= upkeepEvery || at.Before(upkeep)) {
			upkeep, kinds[0].From, kinds[1].From, kinds[2].From = at, time.Time{}, time.Time{}, time.Time{}
			e.upkeep(ctx, at)
		}

		for _, deletion := range e.deletions(ctx, kinds, asOf) {
			if !e.repeat(deletion) {
				return
			}
		}

		if !e.waitFor(e.o.retainEvery()) {
			return
		}
	}
}

// deletion is a part of what retain does. Its step is one transaction.
type deletion struct {
	failed string // log record of an error
	step   func() (more bool, err error)
}

// deletions returns what to do with the records that are old at asOf, which is
// zero while nothing may be deleted. kinds remember where to go on. After a
// failure that deleted no task, this round returns no free space.
func (e *Engine) deletions(ctx context.Context, kinds []db.Prune, asOf time.Time) (list []deletion) {
	failed := false
	for i, keep := range []time.Duration{e.o.Keep, e.o.KeepFailed, 0} {
		if asOf.IsZero() || keep <= 0 && !kinds[i].Kept {
			continue
		}
		list = append(list, deletion{"cannot delete old tasks", func() (bool, error) {
			kinds[i].Before = asOf.Add(-keep)
			done, err := e.store.Prune(ctx, kinds[i])
			kinds[i].From = done.From
			failed = failed || err != nil && done.Tasks == 0 // one bad row doesn't keep the others
			return done.More, err
		}})
	}

	if !asOf.IsZero() {
		list = append(list, deletion{"cannot delete old unique keys", func() (bool, error) { return e.store.PruneKeys(ctx, asOf) }})
	}

	return append(list, deletion{"cannot return free space", func() (bool, error) {
		if failed || e.used() > 0 {
			return false, nil
		}
		more, err := e.store.Vacuum(ctx)
		return more && err == nil, err
	}})
}

// repeat calls the step until it has nothing more to do. It returns false if
// the loop ends before. It pauses for at least as long as a step took. It calls
// the step at least once, so that a short-lived worker deletes something, too.
func (e *Engine) repeat(d deletion) bool {
	for {
		began := now()
		more, err := d.step()
		if err != nil {
			e.log.Warn(d.failed, "err", err)
		}
		if !more {
			return true
		}
		if !e.waitFor(max(retainPause, now().Sub(began))) {
			return false
		}
	}
}

// retainEvery returns the interval at which retain searches for old tasks. If
// tasks are kept for a long time, the interval is longer, because a small delay
// does not matter then.
func (o *Options) retainEvery() time.Duration {
	every := maxRetainEvery
	for _, keep := range []time.Duration{o.Keep, o.KeepFailed} {
		if keep > 0 {
			every = min(every, max(keep/60, minRetainEvery))
		}
	}
	return every
}

// upkeep adds up counters of minutes to counters of hours, deletes old counters
// of hours, and deletes records of old workers.
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
