package db

import (
	"context"
	"fmt"
	"slices"
	"time"

	"example.com/runner/jobs"
)

// renewLeases moves the leases of the claims [2], JSON pairs of id and generation_id, of worker [3] to [1]. A beat always changes
// the value, even with the clock set back: a reaper looks for change. Returns the claims that the worker still owns.
var renewLeases = command(`UPDATE {tasks} SET lease_expires_at = {greatest}(?, lease_expires_at + 1)
WHERE (id, generation_id) IN (SELECT CAST(value->>0 AS bigint), CAST(value->>1 AS bigint) FROM {json_each}) AND worker = ?
	AND state = 'running'
RETURNING id, generation_id`)

// selectOwned lists the claims of worker [1] that are not revoked. Index: tasks_running.
var selectOwned = query(`SELECT id, generation_id FROM {tasks} WHERE worker = ? AND state = 'running' AND lease_expires_at <> 0`)

// selectCancelRequests lists the claims of worker [1] that someone wants cancelled. Index: tasks_running.
var selectCancelRequests = query(`SELECT id, tasks.generation_id, now AS cancel_now, text AS cancel_text
	FROM {tasks} {join_in_order} {cancel_requests} ON task_id = tasks.id
WHERE worker = ? AND state = 'running' AND cancel_requests.generation_id >= tasks.generation_id - 1`)

// selectLeases lists the claims of other workers than [1], with their leases. Index: tasks_running.
var selectLeases = query(`SELECT tasks.id, tasks.generation_id, tasks.worker, coalesce(workers.id,
	'') AS worker_id, tasks.lease_expires_at, coalesce(workers.lease, 0) AS lease
FROM {tasks} LEFT JOIN {workers} ON workers.number = tasks.worker WHERE tasks.state = 'running' AND tasks.worker <> ?`)

// selectClaim reads task [1] if it still is the claim of generation [2] of worker [3].
var selectClaim = query(claimed)

const claimed = selectTasks + ` WHERE tasks.id = ? AND tasks.generation_id = ? AND tasks.worker = ? AND tasks.state = 'running'`

// revokeClaim revokes the claim of task [1], generation [2], worker [3], if its lease still is [4]. A revoked claim is a running task
// whose lease is 0; its generation is one above that of the claim. It keeps its worker, so that the worker's processes can be found.
var revokeClaim = command(`UPDATE {tasks} SET generation_id = generation_id + 1, lease_expires_at = 0
WHERE id = ? AND generation_id = ? AND worker = ? AND state = 'running' AND lease_expires_at = ?`)

// selectRevoked is selectClaim for a claim that is revoked.
var selectRevoked = query(claimed + ` AND lease_expires_at = 0`)

// selectClaims reads the running tasks of worker [1]. Index: tasks_running.
var selectClaims = query(selectTasks + ` WHERE tasks.worker = ? AND tasks.state = 'running' ORDER BY tasks.id`)

// ClaimID names one claim of a task: its later writes carry both numbers.
type ClaimID struct {
	ID           int64 `db:"id"`
	GenerationID int64 `db:"generation_id"`
}

// CancelRequest is a claim that someone wants cancelled.
type CancelRequest struct {
	ClaimID
	Now  bool // by KILL at once
	Text string
}

// Beat renews the leases of running until lease after now, and the worker's own sign of life. It returns the claims that are
// still the worker's: what is missing has been taken away, and its attempt must stop.
func (w *Worker) Beat(ctx context.Context, running []ClaimID, lease time.Duration, now time.Time) (owned []ClaimID, err error) {
	pairs := make([][2]int64, len(running))
	for i, c := range running {
		pairs[i] = [2]int64{c.ID, c.GenerationID}
	}
	err = w.attemptCounter.write(func(run func(*tx) error) error { return w.db.beat(ctx, run) }, func(t *tx) error {
		owned = nil
		if len(running) > 0 {
			if err := t.list(&owned, renewLeases, now.Add(lease).UnixMilli(), jsonText(pairs), w.number); err != nil {
				return err
			}
		}
		return t.run(touchWorker, now.UnixMilli(), w.number)
	})
	if err != nil {
		return nil, fmt.Errorf("heartbeat: %w", err)
	}
	return owned, nil
}

// Owned lists the claims that the database says are the worker's.
func (w *Worker) Owned(ctx context.Context) ([]ClaimID, error) {
	return readRows[ClaimID](ctx, w.db, selectOwned, w.number)
}

// Release gives back claims that were never started, and cancels those of them that someone wants cancelled.
func (w *Worker) Release(ctx context.Context, claims []ClaimID, now time.Time) error {
	return w.db.update(ctx, normal, func(t *tx) error {
		list := make([]Finish, 0, len(claims))
		for _, c := range claims {
			var rows []row
			if err := t.list(&rows, selectClaim, c.ID, c.GenerationID, w.number); err != nil {
				return err
			}
			for i := range rows {
				list = append(list, Finish{Task: rows[i].task(), Release: true})
			}
		}
		_, err := t.finish(w.number, list, false, now)
		return err
	})
}

// CancelRequests lists the claims of the worker that someone wants cancelled.
func (w *Worker) CancelRequests(ctx context.Context) ([]CancelRequest, error) {
	type row struct {
		ClaimID
		Now  boolean `db:"cancel_now"`
		Text text    `db:"cancel_text"`
	}
	return readAs(ctx, w.db, func(r *row) CancelRequest { return CancelRequest{r.ClaimID, bool(r.Now), string(r.Text)} },
		selectCancelRequests, w.number)
}

// Lease is a claim of another worker as it was seen.
type Lease struct {
	ClaimID
	Worker    int64  `db:"worker"`           // its number
	WorkerID  string `db:"worker_id"`        // empty: the worker is not known any more
	ExpiresAt int64  `db:"lease_expires_at"` // as stored; only compared with itself, and with 0
	Length    int64  `db:"lease"`            // ms
}

// Revoked says whether the claim is revoked: its worker can write nothing more about it, and its loss is not yet recorded.
func (l Lease) Revoked() bool { return l.ExpiresAt == 0 }

// Claimed returns the claim as its worker and its processes know it.
func (l Lease) Claimed() ClaimID {
	if l.Revoked() {
		return ClaimID{l.ID, l.GenerationID - 1}
	}
	return l.ClaimID
}

// Leases lists the claims of all other workers.
func (w *Worker) Leases(ctx context.Context) ([]Lease, error) {
	return readRows[Lease](ctx, w.db, selectLeases, w.number)
}

// Reaped is a claim that was taken away from its worker.
type Reaped struct {
	Task   jobs.Task // as it was claimed; its generation is one more if the claim was revoked
	Change jobs.Change
}

// Revoke takes claims away from their workers whose leases have expired. From then on the database refuses everything that a worker
// writes about such a claim. Its processes may live on: the task keeps running until Reap records the loss. A claim that was renewed or
// finished since it was seen is left alone, and so is one that is revoked already. It returns those that are revoked, as they are now.
func (w *Worker) Revoke(ctx context.Context, expired []Lease) ([]Lease, error) {
	if !slices.ContainsFunc(expired, func(l Lease) bool { return !l.Revoked() }) {
		return expired, nil
	}
	// what is killed after it must be known to a server after a crash
	return updateAs(ctx, w.db, full, func(t *tx) (revoked []Lease, err error) {
		for _, l := range expired {
			if l.Revoked() {
				revoked = append(revoked, l)
				continue
			}
			n, err := t.exec(revokeClaim, l.ID, l.GenerationID, l.Worker, l.ExpiresAt)
			if err != nil {
				return nil, err
			}
			if n == 1 {
				l.GenerationID, l.ExpiresAt = l.GenerationID+1, 0
				revoked = append(revoked, l)
			}
		}
		return revoked, nil
	})
}

// Reap records the loss of revoked claims: each task becomes pending, failed or cancelled, as jobs.Next says. The caller has seen to it
// that no process of them is left. A claim that somebody else has reaped is left alone. It returns those that were reaped.
func (w *Worker) Reap(ctx context.Context, revoked []Lease, now time.Time) ([]Reaped, error) {
	reaped, err := updateAs(ctx, w.db, normal, func(t *tx) (reaped []Reaped, err error) {
		for _, l := range revoked {
			some, err := t.lose(l.Worker, now, selectRevoked, l.ID, l.GenerationID, l.Worker)
			if err != nil {
				return nil, err
			}
			reaped = append(reaped, some...)
		}
		return reaped, nil
	})
	w.countLost(reaped, err)
	return reaped, err
}

// ReapDead records the loss of all that a worker had in hand, and its end. The caller has proof that its process is dead, and
// with it every process of its tasks. It returns those that were reaped.
func (w *Worker) ReapDead(ctx context.Context, worker int64, now time.Time) ([]Reaped, error) {
	reaped, err := updateAs(ctx, w.db, normal, func(t *tx) ([]Reaped, error) {
		if err := t.run(loseWorker, now.UnixMilli(), worker); err != nil {
			return nil, err
		}
		return t.lose(worker, now, selectClaims, worker)
	})
	w.countLost(reaped, err)
	return reaped, err
}

// countLost adds losses to the attemptCounter, once they are written.
func (w *Worker) countLost(reaped []Reaped, err error) {
	if err != nil {
		return
	}
	for _, r := range reaped {
		w.attemptCounter.add(r.Task, jobs.ReasonLost)
	}
}

// lose records the loss of the tasks of worker that a statement selects.
func (t *tx) lose(worker int64, now time.Time, claims *statement, args ...any) ([]Reaped, error) {
	var rows []row
	if err := t.list(&rows, claims, args...); err != nil {
		return nil, err
	}
	list := make([]Finish, len(rows))
	for i := range rows {
		task := rows[i].task()
		list[i] = Finish{Task: task, revoked: rows[i].LeaseExpiresAt == 0, Outcome: jobs.Outcome{Reason: jobs.ReasonLost,
			Error:   "its worker was lost",
			Started: task.StartedAt, Finished: now, Duration: max(now.Sub(task.StartedAt), 0)}}
	}
	done, err := t.finish(worker, list, false, now)
	if err != nil {
		return nil, err
	}
	reaped := make([]Reaped, len(list))
	for i := range list {
		reaped[i] = Reaped{list[i].Task, done[i].Change}
	}
	return reaped, nil
}
