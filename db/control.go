package db

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"example.com/runner/jobs"
)

// cancelTask cancels task [5] if it waits; who and why [1], times [2], [3].
const cancelTask = `UPDATE tasks SET state = 'cancelled', generation_id = generation_id + 1, reason = 'cancelled', error = ?, finished_at = ?,
	updated_at = ? WHERE id = ? AND (state = 'scheduled' OR state = 'pending' OR state = 'blocked' OR state = 'retrying') RETURNING queue`

// askCancel asks the owner of task [5] to cancel it, if it runs. It is no change of state or owner, and keeps the generation.
const askCancel = `UPDATE tasks SET cancel_requested_at = coalesce(cancel_requested_at, ?), cancel_now = max(cancel_now, ?),
	cancel_text = coalesce(cancel_text, ?) WHERE id = ? AND state = 'running'`

// retryFinished makes the finished task [4] wait again, as if new, due at [2] in state [1]; time [3]. No row: it is not finished, or its
// unique key is taken.
const retryFinished = `UPDATE OR IGNORE tasks SET state = ?, generation_id = generation_id + 1, attempt = 0, losses = 0, run_at = ?, updated_at = ?,
	expires_at = NULL, finished_at = NULL, started_at = NULL, reason = NULL, error = NULL, result = NULL, exit_code = NULL, signal = NULL,
	duration = NULL, output_bytes = 0, output_truncated = 0, progress = NULL, cancel_requested_at = NULL, cancel_now = 0, cancel_text = NULL
WHERE id = ? AND finished_at IS NOT NULL`

// hastenTask makes the waiting task [3] due at [1], counts kept; time [2]. If that is later its state, and so its generation, stays.
const hastenTask = `UPDATE tasks SET state = CASE WHEN ?1 > ?2 THEN state ELSE 'pending' END,
	generation_id = generation_id + CASE WHEN ?1 > ?2 THEN 0 ELSE 1 END, run_at = ?1, updated_at = ?2
WHERE id = ?3 AND (state = 'scheduled' OR state = 'retrying') RETURNING state`

const selectState = `SELECT state FROM tasks WHERE id = ?`

// deleteTask forgets task [1] if it has finished; the rest of it goes in the same transaction.
const (
	deleteTask     = `DELETE FROM tasks WHERE id = ? AND finished_at IS NOT NULL`
	deleteAttempts = `DELETE FROM attempt_rows WHERE task_id = ?`
	deleteOutputs  = `DELETE FROM output WHERE task_id = ?`
	deleteInput    = `DELETE FROM inputs WHERE task_id = ?`
)

// Moved is what became of one task.
type Moved struct {
	ID    int64
	State jobs.State // as it is now; empty: there is no such task
	Done  bool       // whether the call did what it was asked, now or (for a finished task that is cancelled) before
	Taken bool       // Retry: its unique key belongs to another unfinished task
}

// Cancel cancels tasks that wait, and asks the workers of those that run; a finished task stays as it is. text says who asks and why.
// hard stops commands by KILL at once.
func (d *DB) Cancel(ctx context.Context, ids []int64, text string, hard bool, now time.Time) ([]Moved, error) {
	text = jobs.CutError(text) // it becomes the task's error
	return d.move(ctx, ids, func(t *tx, id int64) (Moved, error) { return t.cancel(id, text, hard, now) })
}

func (t *tx) cancel(id int64, text string, hard bool, now time.Time) (Moved, error) {
	var queue string
	switch err := t.scan(cancelTask, []any{text, now.UnixMilli(), now.UnixMilli(), id}, &queue); {
	case err == nil:
		return Moved{State: jobs.Cancelled, Done: true}, t.count(map[count]int{{queue, jobs.Cancelled}: 1}, now)
	case !errors.Is(err, sql.ErrNoRows):
		return Moved{}, err
	}
	n, err := t.exec(askCancel, now.UnixMilli(), hard, text, id)
	if err != nil || n == 1 {
		return Moved{State: jobs.Running, Done: true}, err
	}
	state, err := t.state(id)
	return Moved{State: state, Done: state.Finished()}, err
}

// Retry makes finished tasks wait again as if they were new, and those that wait for a time or for their next attempt due at once.
// They are due at the given time.
func (d *DB) Retry(ctx context.Context, ids []int64, due, now time.Time) ([]Moved, error) {
	to := jobs.Pending
	if due.After(now) {
		to = jobs.Scheduled
	}
	return d.move(ctx, ids, func(t *tx, id int64) (Moved, error) {
		if _, err := t.exec(forgetSteps, id); err != nil { // what has completed is done all over again
			return Moved{}, err
		}
		n, err := t.exec(retryFinished, string(to), due.UnixMilli(), now.UnixMilli(), id)
		if err == nil && n == 1 {
			_, err = t.exec(reopenTask, id)
		}
		if err != nil || n == 1 {
			return Moved{State: to, Done: true}, err
		}
		var state jobs.State
		err = t.scan(hastenTask, []any{due.UnixMilli(), now.UnixMilli(), id}, &state)
		if !errors.Is(err, sql.ErrNoRows) {
			return Moved{State: state, Done: true}, err
		}
		state, err = t.state(id)
		return Moved{State: state, Done: state == jobs.Pending, Taken: state.Finished()}, err
	})
}

// Delete forgets finished tasks, with their attempts and output.
func (d *DB) Delete(ctx context.Context, ids []int64) ([]Moved, error) {
	return d.move(ctx, ids, func(t *tx, id int64) (Moved, error) {
		n, err := t.exec(deleteTask, id)
		if err != nil {
			return Moved{}, err
		}
		if n == 0 {
			state, err := t.state(id)
			return Moved{State: state}, err
		}
		return Moved{Done: true}, t.forget(id)
	})
}

// forget deletes all that belongs to a task that was deleted.
func (t *tx) forget(id int64) error {
	for _, text := range []string{deleteAttempts, deleteOutputs, deleteInput, deleteSteps} {
		if _, err := t.exec(text, id); err != nil {
			return err
		}
	}
	return nil
}

// moveMost is how many tasks are moved in one transaction: others get their turn in between.
const moveMost = 500

func (d *DB) move(ctx context.Context, ids []int64, one func(*tx, int64) (Moved, error)) ([]Moved, error) {
	moved := make([]Moved, 0, len(ids))
	for len(ids) > 0 {
		part := ids[:min(moveMost, len(ids))]
		ids = ids[len(part):]
		done := make([]Moved, len(part))
		err := d.update(ctx, full, func(t *tx) error {
			for i, id := range part {
				m, err := one(t, id)
				if err != nil {
					return err
				}
				m.ID = id
				done[i] = m
			}
			return nil
		})
		if err != nil {
			return moved, err
		}
		moved = append(moved, done...)
	}
	return moved, nil
}

func (t *tx) state(id int64) (jobs.State, error) {
	var state jobs.State
	err := t.scan(selectState, []any{id}, &state)
	if errors.Is(err, sql.ErrNoRows) {
		return "", nil
	}
	return state, err
}
