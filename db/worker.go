package db

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"example.com/runner/jobs"
	commands "example.com/runner/jobs/command"
)

var insertWorker = command(`INSERT INTO {workers} (id, name, host, boot_id, pid,
	pid_namespace, "user", uid, version, slots, queues, jobs, state,
	lease, started_at, beat_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'ready', ?, ?, ?) RETURNING number`)

// setWorkerQueues replaces the queues of worker [2] by [1].
var setWorkerQueues = command(`UPDATE {workers} SET queues = ? WHERE number = ?`)

// touchWorker records a heartbeat of worker [2] at time [1].
var touchWorker = command(`UPDATE {workers} SET beat_at = ? WHERE number = ?`)

var drainWorker = command(`UPDATE {workers} SET state = 'draining' WHERE number = ?`)

var endWorker = command(`UPDATE {workers} SET ended_at = ?, beat_at = ? WHERE number = ?`)

// loseWorker records at time [1] that worker [2] is dead. The time of its last
// heartbeat stays.
var loseWorker = command(`UPDATE {workers} SET ended_at = ? WHERE number = ? AND ended_at IS NULL`)

// selectOwners lists the workers except [1] that have not ended, or that have
// ended but still have running tasks. Indexes: workers_live, tasks_running.
var selectOwners = query(`SELECT number, id, host, boot_id, pid, pid_namespace, uid, EXISTS (SELECT 1 FROM {tasks}
	WHERE worker = workers.number AND state = 'running') AS busy
FROM {workers} WHERE ended_at IS NULL AND number <> ?1
UNION ALL SELECT number, id, host, boot_id, pid, pid_namespace, uid, TRUE FROM {workers}
WHERE number IN (SELECT worker FROM {tasks} WHERE state = 'running' AND worker <> ?1) AND ended_at IS NOT NULL`)

// selectWorkers lists the workers that have not ended and whose last heartbeat
// is not older than [1]. Index: workers_live.
var selectWorkers = query(`SELECT id, name, host, boot_id AS bootid, pid, pid_namespace AS namespace, "user", uid, version,
	slots, queues, jobs, state, lease, started_at, beat_at,
	(SELECT {json_list}(id) FROM (SELECT id FROM {tasks} WHERE worker = workers.number AND state = 'running'
	ORDER BY id) AS claims) AS running
FROM {workers} WHERE ended_at IS NULL AND beat_at >= ? ORDER BY started_at, id`)

// WorkerInfo is the record that a worker has written about itself.
type WorkerInfo struct {
	ID        string // random text that identifies the worker; no other worker ever has the same id
	Name      string // name of the worker, from the options of Work
	Host      string
	BootID    string // id of the current boot of the machine when the worker started; empty if unknown
	PID       int
	Namespace string          // PID namespace that PID belongs to; empty if unknown
	User      string          // name of the user who runs the worker
	UID       int             // id of the user who runs the worker; -1 if unknown
	Version   string          // version of runner in the worker, as in the constant RunnerVersion
	Slots     int             // greatest number of attempts that the worker runs at once; the attempts of a batch count as one
	Queues    []jobs.QueueMax // queues that the worker serves; nil for all queues
	Jobs      []string        // names of the jobs whose tasks the worker takes; none in runner run
	State     WorkerState     // state when the worker was read
	Lease     time.Duration
	StartedAt time.Time
	BeatAt    time.Time // time of the last heartbeat of the worker
	Dead      bool      // whether the process of the worker is known to be dead; false for a worker of another machine
	Running   []int64   // ids of the tasks that the worker runs
}

// Worker is a registered worker. Only one goroutine may call Cycle at a time.
// All other methods are safe for concurrent use.
type Worker struct {
	db             *DB
	id             string
	number         int64 // identifies the worker in the rows of tasks and attempts
	claimer        *claimer
	attemptCounter attemptCounter
	hooks          commands.Hooks // see SetHooks
	slowPath       atomic.Int64   // how many of the next cycles skip the fast path; 0 or less for none
}

// Number returns the number that identifies the worker in the rows of tasks and
// attempts.
func (w *Worker) Number() int64 { return w.number }

// ID returns the worker's id, which is random and never reused.
func (w *Worker) ID() string { return w.id }

// SetHooks sets the hooks of tasks without hooks of their own. Call it before
// all other methods.
func (w *Worker) SetHooks(h commands.Hooks) { w.hooks = h }

// NewWorkerID returns a new random id for a worker.
func NewWorkerID() string { return uuid.Must(uuid.NewV7()).String() }

// Register adds a worker that runs the tasks of the jobs in list. If info.ID is
// empty, the worker gets an id from NewWorkerID.
func (d *DB) Register(ctx context.Context, info WorkerInfo, list []ClaimJob) (*Worker, error) {
	if err := d.MakeDir(); err != nil {
		return nil, err
	}

	id := cmp.Or(info.ID, NewWorkerID())
	w := &Worker{db: d, id: id, claimer: newClaimer(id, list)}
	names := slices.Concat([]string{}, info.Jobs) // never nil
	at := info.StartedAt.UnixMilli()
	return w, d.update(ctx, normal, func(t *tx) error {
		if err := t.noteBoot(info.BootID, info.StartedAt); err != nil {
			return err
		}
		err := t.scan(insertWorker, []any{w.id, info.Name, info.Host, info.BootID, int64(info.PID), info.Namespace, info.User,
			int64(info.UID), info.Version, int64(info.Slots), queuesText(info.Queues), jsonText(names), millis(info.Lease), at, at},
			&w.number)
		w.claimer.worker = w.number
		return err
	})
}

// SetQueues records the queues from which the worker will claim.
func (w *Worker) SetQueues(ctx context.Context, queues []jobs.QueueMax) error {
	return w.db.update(ctx, normal, func(t *tx) error { return t.execOne(setWorkerQueues, queuesText(queues), w.number) })
}

// queuesText returns the value of the column queues.
func queuesText(queues []jobs.QueueMax) any {
	if queues == nil {
		return nil
	}
	return jsonText(queues)
}

// WorkerState says whether a worker starts tasks.
type WorkerState string

// The states of a worker. No row has the state WorkerLost.
const (
	WorkerReady    WorkerState = "ready"
	WorkerDraining WorkerState = "draining" // it starts no more tasks
	WorkerLost     WorkerState = "lost"     // it is dead, or its last heartbeat is older than its lease
)

// Drain records that the worker starts no more tasks.
func (w *Worker) Drain(ctx context.Context) error {
	return w.db.update(ctx, normal, func(t *tx) error { return t.run(drainWorker, w.number) })
}

// Sync writes a heartbeat and waits until its commit, and with it all earlier
// ones, are on the disk.
func (w *Worker) Sync(ctx context.Context, now time.Time) error {
	return w.db.update(ctx, synced, func(t *tx) error { return t.run(touchWorker, now.UnixMilli(), w.number) })
}

// End records the end of the worker, and the ended attempts that it has counted
// since its last write.
func (w *Worker) End(ctx context.Context, now time.Time) error {
	return w.attemptCounter.write(func(run func(*tx) error) error { return w.db.update(ctx, normal, run) }, func(t *tx) error {
		return t.run(endWorker, now.UnixMilli(), now.UnixMilli(), w.number)
	})
}

// Owner is a worker that may have died with running tasks.
type Owner struct {
	Number    int64  `db:"number"`
	ID        string `db:"id"`
	Host      string `db:"host"`
	BootID    string `db:"boot_id"`
	PID       int    `db:"pid"`
	Namespace string `db:"pid_namespace"` // PID namespace; empty if unknown
	UID       int    `db:"uid"`           // -1 if unknown
	Busy      bool   `db:"busy"`          // whether the worker has running tasks
}

// Owners lists the other workers that have not ended, and those that have ended
// but still have running tasks.
func (w *Worker) Owners(ctx context.Context) ([]Owner, error) {
	return readRows[Owner](ctx, w.db, selectOwners, w.number)
}

// Workers lists the workers that have not ended and whose last heartbeat is at
// or after since.
func (d *DB) Workers(ctx context.Context, since time.Time) ([]WorkerInfo, error) {
	type row struct {
		WorkerInfo
		Queues    text
		Jobs      text
		Lease     number
		StartedAt number `db:"started_at"`
		BeatAt    number `db:"beat_at"`
		Running   text
	}
	var invalid error
	workers, err := readAs(ctx, d, func(r *row) WorkerInfo {
		w := r.WorkerInfo
		w.Lease, w.StartedAt, w.BeatAt = r.Lease.duration(), r.StartedAt.time(), r.BeatAt.time()
		for _, part := range []struct {
			text text
			to   any
		}{{r.Queues, &w.Queues}, {r.Jobs, &w.Jobs}, {r.Running, &w.Running}} {
			if part.text != "" {
				invalid = cmp.Or(invalid, json.Unmarshal([]byte(part.text), part.to))
			}
		}

		return w
	}, selectWorkers, since.UnixMilli())
	return workers, cmp.Or(err, invalid)
}
