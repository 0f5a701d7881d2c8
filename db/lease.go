package db

import (
	"context"
	"fmt"
	"slices"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// This file changes claims that exist. A worker renews, reads and releases its
// own claims. A reaper revokes the claims of a hung worker and records the
// losses. Package runner/internal/engine decides when (heartbeat.go and
// reaper.go).
//
// A reaper takes the tasks of a hung worker over in two steps. Revoke adds one
// to the generation of each claim, so that later writes of the worker change no
// row, and sets the lease to 0; the tasks stay running. Then the reaper kills
// their processes, and when all are dead, Reap lets the tasks run again. Revoke
// comes before the kill, because the hung worker may continue at any moment,
// and would then record how the killed commands ended. If the reaper dies in
// between, another one sees by the lease of 0 that the claim is revoked, and
// continues.
//
// Invariants:
//   - Each write of a claim names the id, the generation and the worker, and
//     changes nothing if one of them has changed.
//   - A reaper compares a lease only with an earlier value of the same lease,
//     and never with its own clock. So each heartbeat must change the lease.
//   - The commit of Revoke is durable (level full), because the caller kills
//     processes afterwards. That of Reap need not be: if a crash undoes it, a
//     reaper records the loss again.

// renewLeases sets the leases of the claims [2] of worker [3] to [1], and
// returns those that the worker still owns. [2] is JSON: pairs of id and
// generation_id. Every lease must change, even if the clock was set back.
// Otherwise a reaper would think that the worker hangs.
var renewLeases = command(`UPDATE {tasks} SET lease_expires_at = {greatest}(?, lease_expires_at + 1)
WHERE (id, generation_id) IN (SELECT CAST(value->>0 AS bigint), CAST(value->>1 AS bigint) FROM {json_each}) AND worker = ?
	AND state = 'running'
RETURNING id, generation_id`)

// selectOwned lists the claims of worker [1] that are not revoked. Index:
// tasks_running.
var selectOwned = query(`SELECT id, generation_id FROM {tasks} WHERE worker = ? AND state = 'running' AND lease_expires_at <> 0`)

// selectCancelRequests lists the claims of worker [1] with a cancel request.
// Without requests it reads no task: it runs often, and reading all claims is
// slow on a server while another session holds an old snapshot. Index:
// tasks_running.
var selectCancelRequests = query(`SELECT id, tasks.generation_id, now AS cancel_now, text AS cancel_text
	FROM {tasks} {join_in_order} {cancel_requests} ON task_id = tasks.id
WHERE worker = ? AND state = 'running' AND cancel_requests.generation_id BETWEEN tasks.generation_id - 1 AND tasks.generation_id
	AND EXISTS (SELECT 1 FROM {cancel_requests})`)

// selectLeases lists the claims of all workers except [1], with their leases.
// Index: tasks_running.
var selectLeases = query(`SELECT tasks.id, tasks.generation_id, tasks.worker, coalesce(workers.id,
	'') AS worker_id, tasks.lease_expires_at, coalesce(workers.lease, 0) AS lease
FROM {tasks} LEFT JOIN {workers} ON workers.number = tasks.worker WHERE tasks.state = 'running' AND tasks.worker <> ?`)

// selectClaim reads task [1] if worker [3] still owns its claim of generation
// [2].
var selectClaim = query(claimed)

const claimed = selectTasks + ` WHERE tasks.id = ? AND tasks.generation_id = ? AND tasks.worker = ? AND tasks.state = 'running'`

// revokeClaim revokes the claim of task [1], generation [2], worker [3], if its
// lease is still [4]. A revoked claim is a running task whose lease is 0 and
// whose generation is one above that of the claim. It keeps its worker, so that
// a reaper can find the processes.
var revokeClaim = command(`UPDATE {tasks} SET generation_id = generation_id + 1, lease_expires_at = 0
WHERE id = ? AND generation_id = ? AND worker = ? AND state = 'running' AND lease_expires_at = ?`)

// selectRevoked reads task [1] of generation [2] and worker [3] if its claim is
// revoked.
var selectRevoked = query(claimed + ` AND lease_expires_at = 0`)

// selectClaims reads the running tasks of worker [1]. Index: tasks_running.
var selectClaims = query(selectTasks + ` WHERE tasks.worker = ? AND tasks.state = 'running' ORDER BY tasks.id`)

// ClaimID identifies one claim of a task. Every later write of the claim names
// both numbers.
type ClaimID struct {
	ID           int64 `db:"id"`
	GenerationID int64 `db:"generation_id"`
}

// CancelRequest is a request to cancel the task of a claim.
type CancelRequest struct {
	ClaimID
	Now  bool // whether to send SIGKILL at once, without SIGTERM before it
	Text string
}

// Beat is a heartbeat. It updates the worker's row, renews the leases of the
// running claims until now + lease, and returns those that the worker still
// owns. The attempts of the others must be stopped.
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

// Owned lists the claims of the worker that are not revoked.
func (w *Worker) Owned(ctx context.Context) ([]ClaimID, error) {
	return readRows[ClaimID](ctx, w.db, selectOwned, w.number)
}

// Release gives back claims whose attempt has not started. It cancels tasks
// with a cancel request.
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

		_, err := t.finish(w.number, list, separately, now)
		return err
	})
}

// CancelRequests lists the cancel requests for claims of the worker.
func (w *Worker) CancelRequests(ctx context.Context) ([]CancelRequest, error) {
	type row struct {
		ClaimID
		Now  boolean `db:"cancel_now"`
		Text text    `db:"cancel_text"`
	}
	return readAs(ctx, w.db, func(r *row) CancelRequest { return CancelRequest{r.ClaimID, bool(r.Now), string(r.Text)} },
		selectCancelRequests, w.number)
}

// revokedLease is the lease of a revoked claim. The statements above spell it.
const revokedLease = 0

// Lease is a claim of another worker, with its lease as Leases has read it.
type Lease struct {
	ClaimID
	Worker   int64  `db:"worker"`    // number of the worker
	WorkerID string `db:"worker_id"` // id of the worker; empty if the worker's row was deleted
	// Stored time of expiry. Compare it only with revokedLease and with later
	// values of the same claim, never with a clock.
	ExpiresAt int64 `db:"lease_expires_at"`
	Length    int64 `db:"lease"` // lease duration in ms
}

// Revoked reports whether the claim is revoked: its worker can't write any
// more, but the loss isn't recorded yet.
func (l Lease) Revoked() bool { return l.ExpiresAt == revokedLease }

// Claimed returns the claim with the generation from before a revocation, the
// only one that its worker and its processes know.
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

// Reaped is a claim whose loss is recorded.
type Reaped struct {
	Task   jobs.Task // before the loss was recorded; of a revoked claim with its generation plus 1
	Change taskspec.Change
}

// Revoke revokes claims whose leases have expired, and returns them with their
// new generation and lease. Their worker can't write any more, but their
// processes may live: the tasks stay running until Reap records the loss. It
// leaves out claims that were renewed, finished or revoked since the caller
// read them.
func (w *Worker) Revoke(ctx context.Context, expired []Lease) ([]Lease, error) {
	if !slices.ContainsFunc(expired, func(l Lease) bool { return !l.Revoked() }) {
		return expired, nil
	}
	// The caller kills processes after this commit, so the server must not lose
	// this commit in a crash.
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
				l.GenerationID, l.ExpiresAt = l.GenerationID+1, revokedLease
				revoked = append(revoked, l)
			}
		}
		return revoked, nil
	})
}

// Reap records that the attempts of revoked claims are lost, and returns the
// claims that it reaped. Each task becomes pending, failed or cancelled, as
// taskspec.Next decides. The caller has made sure that no process of the claims
// is alive. Claims that another worker has reaped are left out.
func (w *Worker) Reap(ctx context.Context, revoked []Lease, now time.Time) ([]Reaped, error) {
	reaped, err := updateAs(ctx, w.db, normal, func(t *tx) (reaped []Reaped, err error) {
		t.hooks = w.hooks
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

// ReapDead records the end of a worker and the loss of all its claims, and
// returns them. The caller must have proof that the worker's process and every
// process of its tasks are dead.
func (w *Worker) ReapDead(ctx context.Context, worker int64, now time.Time) ([]Reaped, error) {
	reaped, err := updateAs(ctx, w.db, normal, func(t *tx) ([]Reaped, error) {
		t.hooks = w.hooks
		if err := t.run(loseWorker, now.UnixMilli(), worker); err != nil {
			return nil, err
		}
		return t.lose(worker, now, selectClaims, worker)
	})
	w.countLost(reaped, err)
	return reaped, err
}

func (w *Worker) countLost(reaped []Reaped, err error) {
	if err != nil {
		return
	}
	for _, r := range reaped {
		w.attemptCounter.add(r.Task, jobs.ReasonLost)
	}
}

// lose records the loss of the tasks of a worker that the statement claims
// selects.
func (t *tx) lose(worker int64, now time.Time, claims *statement, args ...any) ([]Reaped, error) {
	var rows []row
	if err := t.list(&rows, claims, args...); err != nil {
		return nil, err
	}

	list := make([]Finish, len(rows))
	for i := range rows {
		task := rows[i].task()
		list[i] = Finish{Task: task, revoked: rows[i].LeaseExpiresAt == revokedLease, Outcome: taskspec.Outcome{
			Reason:   jobs.ReasonLost,
			Error:    "its worker was lost",
			Started:  task.StartedAt,
			Finished: now,
			Duration: max(now.Sub(task.StartedAt), 0),
		}}
	}

	// None of them is fenced: this transaction has the write lock and has just
	// read the claims.
	done, err := t.finish(worker, list, separately, now)
	if err != nil {
		return nil, err
	}

	reaped := make([]Reaped, len(list))
	for i := range list {
		reaped[i] = Reaped{list[i].Task, done[i].Change}
	}

	return reaped, nil
}
