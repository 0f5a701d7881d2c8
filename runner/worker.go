package runner

import (
	"context"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/runner/internal/engine"
)

// Worker is the record that a worker has written about itself.
type Worker = jobs.Worker

// QueueMax is a queue that a worker serves.
type QueueMax = jobs.QueueMax

// seenWithin limits the result of Workers to workers whose last heartbeat is at
// most this many leases old.
const seenWithin = 2

// Workers returns the workers with a recent heartbeat, in the order of their
// starts.
func (r *Runner) Workers(ctx context.Context) ([]Worker, error) {
	at := now()
	list, err := r.store.Workers(ctx, at.Add(-24*time.Hour))
	list = slices.DeleteFunc(list, func(w Worker) bool { return at.Sub(w.BeatAt) > seenWithin*w.Lease })
	for i := range list {
		w := &list[i]
		if w.Dead = engine.Dead(r.store, w.ID); w.Dead || at.Sub(w.BeatAt) > w.Lease {
			w.State = db.WorkerLost
		}
	}

	return list, err
}

// serves reports whether a worker runs tasks of a queue.
func serves(w Worker, queue string) bool {
	return w.Queues == nil || slices.ContainsFunc(w.Queues, func(q QueueMax) bool { return q.Name == queue })
}
