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
type Worker struct {
	ID        string // random text that identifies the worker; no other worker ever has the same id
	Name      string // name of the worker, from Options.Name
	Host      string
	BootID    string // id of the current boot of the machine when the worker started; empty if unknown
	PID       int
	Namespace string     // PID namespace that PID belongs to; empty if unknown
	User      string     // name of the user who runs the worker
	UID       int        // id of the user who runs the worker; -1 if unknown
	Version   string     // version of runner in the worker, as in the constant Version
	Slots     int        // greatest number of attempts that the worker runs at once; the attempts of a batch count as one
	Queues    []QueueMax // queues that the worker serves; nil for all queues
	Jobs      []string   // names of the jobs whose tasks the worker takes; none in runner run
	// State is the state of the worker when Workers was called. In this table, "it" is the worker:
	//
	//	ready:      it starts tasks.
	//	draining:   it starts no more tasks.
	//	overloaded: it starts no task, because the load of its machine is too high (Options.MaxLoad).
	//	low_memory: it starts no task, because its machine has too little free memory (Options.MinFreeMemory).
	//	lost:       it is dead, or its last heartbeat is older than its lease.
	State     string
	Lease     time.Duration
	StartedAt time.Time
	BeatAt    time.Time // time of the last heartbeat of the worker
	Dead      bool      // whether the process of the worker is known to be dead; false for a worker of another machine
	Running   []int64   // ids of the tasks that the worker runs
	Leaked    int       // number of handlers that still run although Options.ReleaseStuck has released their slots, as of BeatAt
}

// QueueMax is a queue that a worker serves.
type QueueMax = jobs.QueueMax

// seenWithin limits the result of Workers to workers whose last heartbeat is at most this many leases old.
const seenWithin = 2

// Workers returns the workers with a recent heartbeat, in the order of their starts.
func (r *Runner) Workers(ctx context.Context) ([]Worker, error) {
	at := now()
	list, err := r.store.Workers(ctx, at.Add(-24*time.Hour))
	var workers []Worker
	for _, w := range list {
		if at.Sub(w.BeatAt) > seenWithin*w.Lease {
			continue
		}
		worker := Worker{ID: w.ID, Name: w.Name, Host: w.Host, BootID: w.BootID, PID: w.PID, Namespace: w.Namespace,
			User: w.User, UID: w.UID, Version: w.Version, Slots: w.Slots, Jobs: w.Jobs, State: w.State, Lease: w.Lease,
			Queues:    w.Queues,
			StartedAt: w.StartedAt, BeatAt: w.BeatAt, Running: w.Running, Leaked: w.Leaked, Dead: engine.Dead(r.store, w.ID)}
		if worker.Dead || at.Sub(w.BeatAt) > w.Lease {
			worker.State = db.WorkerLost
		}
		workers = append(workers, worker)
	}
	return workers, err
}

// serves reports whether a worker runs tasks of a queue.
func (w Worker) serves(queue string) bool {
	return w.Queues == nil || slices.ContainsFunc(w.Queues, func(q QueueMax) bool { return q.Queue == queue })
}
