package admin

import (
	"context"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/internal/engine"
)

type (
	// Worker is the record that a worker has written about itself: who it is,
	// what it serves (Queues, Jobs, Slots), and which tasks it runs.
	Worker = db.WorkerInfo
	// WorkerState says whether a worker starts tasks.
	WorkerState = db.WorkerState
)

// The states of a worker.
const (
	WorkerReady    = db.WorkerReady
	WorkerDraining = db.WorkerDraining // it starts no more tasks
	WorkerLost     = db.WorkerLost     // it is dead, or its last heartbeat is older than its lease
)

// seenWithin limits the result of Workers to workers whose last heartbeat is at
// most this many leases old.
const seenWithin = 2

// Workers returns the workers with a recent heartbeat, in the order of their
// starts.
func Workers(ctx context.Context, r *runner.Runner) ([]Worker, error) {
	at := now()
	list, err := db.Of(r).Workers(ctx, at.Add(-24*time.Hour))
	list = slices.DeleteFunc(list, func(w Worker) bool { return at.Sub(w.BeatAt) > seenWithin*w.Lease })
	for i := range list {
		w := &list[i]
		if w.Dead = engine.Dead(db.Of(r), w.ID); w.Dead || at.Sub(w.BeatAt) > w.Lease {
			w.State = WorkerLost
		}
	}

	return list, err
}

// serves reports whether a worker runs tasks of a queue.
func serves(w Worker, queue string) bool {
	return w.Queues == nil || slices.ContainsFunc(w.Queues, func(q jobs.QueueMax) bool { return q.Name == queue })
}
