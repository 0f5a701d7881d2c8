package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/runner/db/internal/engine"
	"example.com/runner/internal/errcode"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// These are the actions of users on tasks. An action changes any number of
// tasks, and each may have changed since the user saw it. So an action decides
// by the state that it reads in its transaction, and its UPDATE names that
// state or the generation. If a task doesn't exist, or if its state doesn't
// allow the action, that's no error: the result has the state.
//
// Only the worker of a running task can stop it. So cancel stores a request,
// and the worker reads it when it's notified of a change. The request names the
// generation of the claim, so it doesn't apply to a later attempt. It still
// applies if another worker has revoked the claim, although that adds one to
// the generation.
//
// Apply changes at most maxApplied tasks in one transaction, and other writers
// get the lock between two. If one fails, the changes of the earlier ones stay,
// and the caller may repeat the whole call. The transaction also updates lanes
// and dependents, as at the end of an attempt (end.go).

// requestCancel requests the cancellation of task [1] if it runs. [2] is the
// time, [3] whether commands get KILL at once, without a TERM before it, and
// [4] says who cancels it and why. An existing request keeps its time and text.
var requestCancel = command(`INSERT INTO {cancel_requests} (task_id, generation_id, requested_at, now, text)
SELECT id, generation_id, ?2, ?3, ?4 FROM {tasks} WHERE id = ?1 AND state = 'running'
ON CONFLICT (task_id) DO UPDATE SET generation_id = excluded.generation_id,
	requested_at = CASE WHEN cancel_requests.generation_id >= excluded.generation_id - 1 THEN cancel_requests.requested_at
	ELSE excluded.requested_at END,
	now = CASE WHEN cancel_requests.generation_id >= excluded.generation_id - 1 AND cancel_requests.now > excluded.now
	THEN cancel_requests.now ELSE excluded.now END,
	text = CASE WHEN cancel_requests.generation_id >= excluded.generation_id - 1 THEN cancel_requests.text ELSE excluded.text END`)

// retryFinished resets the finished task [5] of generation [6] to the state
// [1]. [2] is its column waits, [3] its due time, and [4] and [7] are the
// current time. It changes no row if another task holds the unique key.
// Indexes: tasks_unique, unique_keys.
var retryFinished = command(`UPDATE {tasks} SET state = ?, waits = ?, generation_id = generation_id + 1,
	attempt = 0, losses = 0, run_at = ?, updated_at = ?,
	expires_at = NULL, finished_at = NULL, started_at = NULL, outcome = NULL, result = NULL
WHERE id = ? AND generation_id = ?
	AND NOT EXISTS (SELECT 1 FROM {tasks} AS other WHERE other.unique_key = tasks.unique_key AND other.finished_at IS NULL)
	AND NOT EXISTS (SELECT 1 FROM {unique_keys} AS held LEFT JOIN {tasks} AS holder ON holder.id = held.task_id
	WHERE held.unique_key = tasks.unique_key AND held.task_id <> tasks.id AND ` + isHeld + `)`)

// selectStatus reads the columns of task [1] that decide how an action changes
// it.
var selectStatus = query(`SELECT ` + waitingColumns + `, state, queue, priority,
	coalesce(parts, 0) >= 2 AS depends, started_at IS NOT NULL AS started,
	CASE WHEN waits = 1 THEN EXISTS (SELECT 1 FROM {task_pauses} WHERE task_id = tasks.id) END AS paused,
	unique_key IS NOT NULL AND options IS NOT NULL AS keyed FROM {tasks} WHERE id = ?`)

var selectState = query(`SELECT state FROM {tasks} WHERE id = ?`)

// deleteTask deletes task [1] if it has finished and no unfinished task depends
// on it, and returns its unique key. selectKept returns the state of a task
// that was kept and, if it has finished, the first unfinished task that depends
// on it.
var (
	deleteTask = command(`DELETE FROM {tasks} WHERE id = ? AND finished_at IS NOT NULL AND NOT ` + needed + `
		RETURNING coalesce(unique_key, '')`)
	selectKept = query(`SELECT state, CASE WHEN finished_at IS NULL THEN 0
		ELSE (SELECT coalesce(min(task_id), 0) ` + dependents + `) END FROM {tasks} WHERE id = ?`)
)

// taskStatus has the columns of a task that decide how an action changes it.
type taskStatus struct {
	waitingTask
	State    jobs.State `db:"state"` // empty if there is no such task
	Queue    string     `db:"queue"`
	Priority int64      `db:"priority"`
	Depends  boolean    `db:"depends"` // whether the task has dependencies, finished or unfinished
	Started  boolean    `db:"started"` // whether an attempt has started
	Paused   boolean    `db:"paused"`
	Keyed    boolean    `db:"keyed"` // whether the task has a unique key that it may hold even after it has finished
}

// NoTask returns the error for an id that no task has.
func NoTask(id int64) error {
	return &jobs.Error{Kind: jobs.ErrNotFound, Code: errcode.NoTask, Subject: fmt.Sprint(id), What: fmt.Sprintf("no task %d", id)}
}

func (t *tx) status(id int64) (taskStatus, error) {
	var list []taskStatus
	if err := t.list(&list, selectStatus, id); err != nil || len(list) == 0 {
		return taskStatus{}, err
	}
	return list[0], nil
}

// Action changes a task for a user; see DB.Apply.
type Action func(t *tx, id int64) (jobs.ActionResult, error)

// Cancel cancels a waiting task, and requests the cancellation of a running one
// from its worker. It doesn't change a finished task. text says who cancels it
// and why. If hard is true, a command gets KILL at once, without a TERM before
// it.
func Cancel(text string, hard bool, now time.Time) Action {
	text = taskspec.CutError(text) // text becomes the error of the task
	return func(t *tx, id int64) (jobs.ActionResult, error) { return t.cancel(id, text, hard, now) }
}

func (t *tx) cancel(id int64, text string, hard bool, now time.Time) (jobs.ActionResult, error) {
	switch e, err := t.cancelWaiting(id, jobs.ReasonCancelled, text, now); {
	case err == nil:
		return jobs.ActionResult{ID: id, State: jobs.Cancelled, Done: true}, t.afterEnd([]end{e}, now)
	case !errors.Is(err, sql.ErrNoRows):
		return jobs.ActionResult{}, err
	}

	n, err := t.exec(requestCancel, id, now.UnixMilli(), hard, text)
	if err != nil || n == 1 {
		return jobs.ActionResult{ID: id, State: jobs.Running, Done: true}, err
	}

	state, err := t.state(id)
	return jobs.ActionResult{ID: id, State: state, Done: state.Finished()}, err
}

// Retry resets a finished task as if it were new. A task that waits for a time
// or for its next attempt becomes due. due is the new due time. A reset task
// waits again for its dependencies, but only for the unfinished ones. With
// dependents, Retry also retries the tasks that were cancelled because this one
// did not complete. Their results follow that of the task on which they depend.
func Retry(due, now time.Time, dependents bool) Action {
	return func(t *tx, id int64) (jobs.ActionResult, error) {
		m, err := t.retry(id, due, now)
		if err == nil && m.Done && dependents {
			err = t.revive(id, now)
		}
		return m, err
	}
}

func (t *tx) retry(id int64, due, now time.Time) (jobs.ActionResult, error) {
	s, err := t.status(id)
	if err != nil || s.State == "" {
		return jobs.ActionResult{ID: id}, err
	}

	state, generation, lane := s.State, s.Generation, string(s.Lane)
	refused := jobs.ActionResult{ID: id, State: state, Done: state == jobs.Pending}
	var n, waits, gone int64
	to := taskspec.InitialState(due, now, false, lane != "" && state != jobs.Retrying)
	switch {
	case state.Finished():
		if bool(s.Depends) {
			if waits, err = t.exec(reopen, id); err != nil {
				return refused, err
			}
			t.used.known = false
			if err := t.scan(selectGone, []any{id}, &gone); err != nil {
				return refused, err
			}
		}
		to = taskspec.InitialState(due, now, waits > 0, lane != "")
		n, err = t.exec(retryFinished, string(to), waitsValue(to, waits > 0), due.UnixMilli(), now.UnixMilli(), id, generation,
			now.UnixMilli())
		switch {
		case err == nil && n == 0:
			refused.Taken = true
			err = t.run(closeAll, id)
		case err == nil:
			if state == jobs.Completed { // when a completed task is retried, all its steps run again
				err = t.run(deleteSteps, id)
			}
			if err == nil {
				err = t.run(reopenTask, id)
			}
			if err == nil && bool(s.Keyed) {
				err = t.retakeKey(id)
			}
		}
	case state == jobs.Scheduled || state == jobs.Retrying:
		switch {
		case generation == 0 && bool(s.Depends):
			to = state // only its time changes, and when it's due, adopt reads its dependencies
		case state == jobs.Retrying && to == jobs.Scheduled:
			to = state // keep the state retrying, so that the task keeps its attempts and its lane
		}
		if n, err = t.exec(setDue, due.UnixMilli(), id, generation); n == 1 {
			err = t.move(id, generation, move{to: to}, now)
		}
	}

	if err != nil || n == 0 {
		return refused, err
	}
	if lane != "" { // this task has given up its lane, but gets it back at once if no other task comes first
		if err := t.freeLane(lane, now); err != nil {
			return refused, err
		}
		to, err = t.state(id)
	}

	return jobs.ActionResult{ID: id, State: to, Done: true, Without: gone}, err
}

// revive retries the tasks that were cancelled because they depend on a task
// which did not complete, and then their dependents.
func (t *tx) revive(id int64, now time.Time) error {
	for again := []int64{id}; len(again) > 0; again = again[1:] {
		var list []int64
		if err := t.list(&list, selectRevivable, again[0]); err != nil {
			return err
		}

		for _, dependent := range list {
			m, err := t.retry(dependent, now, now)
			if err != nil {
				return err
			}
			t.revived = append(t.revived, m)
			if m.Done {
				again = append(again, dependent)
			}
		}
	}
	return nil
}

// Delete deletes a finished task with its attempts and output, and frees its
// unique key. The task stays while an unfinished task depends on it.
func Delete() Action {
	return func(t *tx, id int64) (jobs.ActionResult, error) {
		m := jobs.ActionResult{ID: id}
		var key string
		err := t.scan(deleteTask, []any{id}, &key)
		if errors.Is(err, sql.ErrNoRows) {
			return m, engine.NoRow(t.scan(selectKept, []any{id}, &m.State, &m.NeededBy))
		}
		if err == nil && key != "" {
			err = t.run(freeKey, key, id)
		}

		m.Done, t.deleted = true, append(t.deleted, id)
		return m, err
	}
}

const maxApplied = 500

// Apply applies an action to each task, in transactions of at most maxApplied
// tasks.
func (d *DB) Apply(ctx context.Context, ids []int64, act Action) ([]jobs.ActionResult, error) {
	results := make([]jobs.ActionResult, 0, len(ids))
	for part := range slices.Chunk(ids, maxApplied) {
		done, err := updateAs(ctx, d, full, func(t *tx) ([]jobs.ActionResult, error) { return t.apply(part, act) })
		if err != nil {
			return results, err
		}
		results = append(results, done...)
	}

	return results, nil
}

// ApplyTx does the same as Apply in the caller's transaction. The workers of
// running tasks notice after the commit. There is no savepoint: after an error
// the caller has to roll back.
func (d *DB) ApplyTx(ctx context.Context, outer *sql.Tx, ids []int64, act Action) ([]jobs.ActionResult, error) {
	t, err := d.joinTx(ctx, outer, engine.Change)
	if err != nil {
		return nil, err
	}
	done, err := t.apply(ids, act)
	if err != nil {
		return nil, fmt.Errorf("change tasks: %w", d.refused(err))
	}
	return done, nil
}

func (t *tx) apply(ids []int64, act Action) (done []jobs.ActionResult, err error) {
	t.deleted = nil
	for _, id := range ids {
		t.revived = nil
		m, err := act(t, id)
		if err != nil {
			return nil, err
		}
		done = append(append(done, m), t.revived...)
	}

	return done, t.forget(t.deleted)
}

func (t *tx) state(id int64) (jobs.State, error) {
	var state jobs.State
	err := t.scan(selectState, []any{id}, &state)
	return state, engine.NoRow(err)
}
