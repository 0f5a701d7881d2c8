package db

import (
	"context"
	"time"

	"example.com/runner/jobs"
)

// A worker that runs a single task reserves it (runner run), so that the task
// starts in the environment of that worker and with its stdin. The column
// worker then has the worker's number, negated, until the claim. The
// reservation lasts as long as the worker: others claim the task once the
// worker has ended or was found dead.

// unreserved leaves out pending tasks that a live worker has reserved. Its
// subquery runs only for reserved tasks.
const unreserved = `
	AND NOT (` + reserved + `)`

// The lowest number, which plain SQL may have written, has no negative.
const reserved = `coalesce(tasks.worker, 0) < 0 AND EXISTS (SELECT 1 FROM {workers}
	WHERE number = -{greatest}(tasks.worker, -9223372036854775807) AND ended_at IS NULL)`

// reserveTask reserves the new task [2] for worker [1].
var reserveTask = command(`UPDATE {tasks} SET worker = -{bigint_param} WHERE id = ?`)

// selectReserver finds the live worker that has reserved task [1].
var selectReserver = query(`SELECT workers.id FROM {tasks} JOIN {workers}
	ON number = -{greatest}(tasks.worker, -9223372036854775807) AND ended_at IS NULL
WHERE tasks.id = ? AND tasks.worker < 0`)

// markInput says that task [1] has an input, though none is stored.
var markInput = command(`UPDATE {tasks} SET parts = coalesce(parts, 0) | 1 WHERE id = ?`)

// reserveAgain reserves task [1], which waits with generation [2] after an
// attempt in worker [3], for that worker.
var reserveAgain = command(`UPDATE {tasks} SET worker = -worker WHERE id = ? AND generation_id = ? AND worker = ?`)

// ReservedBy returns the id of the live worker that has reserved a task, or "".
func (d *DB) ReservedBy(ctx context.Context, id int64) (string, error) {
	workers, err := readRows[struct {
		ID string `db:"id"`
	}](ctx, d, selectReserver, id)
	if err != nil || len(workers) == 0 {
		return "", err
	}
	return workers[0].ID, nil
}

// InsertReserved adds one task and reserves it for w, unless an older task was
// kept. stdin says that the command reads an input that only this worker has,
// so no other start of the task can have it.
func (d *DB) InsertReserved(ctx context.Context, w *Worker, spec *jobs.Spec, stdin bool, now time.Time) (added jobs.Enqueued, err error) {
	err = d.updateAlone(ctx, full, func(t *tx) (err error) {
		added, err = t.insertSpec(spec, nil, now)
		if err == nil && !added.Kept {
			err = t.execOne(reserveTask, w.number, added.ID)
		}
		if err == nil && !added.Kept && stdin {
			err = t.execOne(markInput, added.ID)
		}
		return err
	})
	return added, err
}

// selectOnly selects task [1] if it waits, unless another worker than [2],
// negated, has reserved it.
var selectOnly = query(`SELECT id, generation_id, queue, job, state, worker FROM {tasks} WHERE id = ?1
	AND state IN ('pending', 'retrying', 'scheduled', 'blocked')
	AND (tasks.worker = ?2 OR NOT (` + reserved + `))`)

// claimOnly claims the task ask.Only if it is pending and no pause or limit
// holds it back. A task that waits after an attempt in this worker is reserved
// again.
func (t *tx) claimOnly(c *claimer, ask Claim, now time.Time) (claimed []jobs.Task, next time.Time, err error) {
	var task []struct {
		candidate
		Queue  string `db:"queue"`
		State  string `db:"state"`
		Worker number `db:"worker"`
	}
	if err := t.list(&task, selectOnly, ask.Only, -c.worker); err != nil || len(task) == 0 {
		return nil, next, err
	}
	if int64(task[0].Worker) == c.worker {
		if err := t.execOne(reserveAgain, ask.Only, task[0].Generation, c.worker); err != nil {
			return nil, next, err
		}
	}
	if task[0].State != string(jobs.Pending) {
		return nil, next, nil
	}

	g, err := t.readAdmission(now)
	if err != nil {
		return nil, next, err
	}

	queue, job := task[0].Queue, task[0].Job
	if g.admits(queue, job, false) {
		if claimed, err = t.claimThese(c, []candidate{task[0].candidate}, ask.Lease, now); err != nil {
			return nil, next, err
		}
		g.count(queue, job, false)
	}

	next, err = t.saveAdmission(g, c, []string{queue}, claimed, now)
	return claimed, next, err
}
