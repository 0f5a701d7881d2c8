package db

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// rewriteTask replaces the settings of the waiting task [18] of generation
// [19]. Both [1] and [17] are the new state: the generation goes up only if the
// state changes.
var rewriteTask = command(`UPDATE {tasks} SET state = ?, queue = ?, job = ?, args = ?,
	label = ?, priority = ?, run_at = ?, expires_at = ?, max_attempts = ?,
	max_losses = ?, options = ?, unique_key = ?, lane = ?, parts = ?, waits = ?, updated_at = ?,
	generation_id = generation_id + CASE WHEN state <> ? THEN 1 ELSE 0 END
WHERE id = ? AND generation_id = ? AND ` + isWaiting)

// raiseTask sets the priority of the waiting task [2] of generation [3] to [1].
var raiseTask = command(`UPDATE {tasks} SET priority = ? WHERE id = ? AND generation_id = ? AND ` + isWaiting)

// selectRivals returns the highest priority among the pending tasks of queue
// [2] and the tasks that wait for lane [3], without task [1], or null. Indexes:
// tasks_pending (one seek for each job of the queue) and tasks_blocked.
var selectRivals = query(`WITH RECURSIVE jobs (job) AS (SELECT min(job) FROM {tasks} WHERE state = 'pending' AND queue = ?2
	UNION ALL SELECT (SELECT min(job) FROM {tasks} WHERE state = 'pending' AND queue = ?2 AND job > jobs.job) FROM jobs
	WHERE job IS NOT NULL)
SELECT max(priority) FROM (SELECT (SELECT priority FROM {tasks} WHERE state = 'pending' AND queue = ?2 AND job = jobs.job AND id <> ?1
	ORDER BY priority DESC LIMIT 1) AS priority FROM jobs WHERE job IS NOT NULL
	UNION ALL SELECT (SELECT priority FROM {tasks} WHERE waits = 0 AND lane = ?3 AND id <> ?1 ORDER BY priority DESC LIMIT 1)) AS rivals`)

// Edit is the new definition of a task.
type Edit struct {
	Spec   jobs.Spec // all settings but DependsOn and DependsOnAny: the task keeps its dependencies
	Due    bool      // whether to set the due time of the task to the due time of Spec
	Expiry bool      // whether to set the expiry of the task to the expiry of Spec
	None   bool      // whether the new settings are equal to the old ones, so that Edit writes nothing
	Input  bool      // whether to replace the stdin of the command by the stdin of Spec
	Text   string    // description of the changes, for people
}

// Edit changes the settings of a waiting task. decide gets the task and returns
// its new settings; it must not take long, and its error comes back unchanged.
// For a task that runs or has finished, nothing happens. ErrConflict means that
// another task holds the new unique key.
func (d *DB) Edit(ctx context.Context, id int64, by string, now time.Time,
	decide func(jobs.Task) (Edit, error)) (jobs.ActionResult, error) {
	var m jobs.ActionResult
	err := d.updateAlone(ctx, full, func(t *tx) (err error) {
		m, err = t.edit(id, by, now, decide)
		return err
	})
	return m, err
}

func (t *tx) edit(id int64, by string, now time.Time, decide func(jobs.Task) (Edit, error)) (jobs.ActionResult, error) {
	s, err := t.changeable(id, now)
	m := jobs.ActionResult{ID: id, State: s.State}
	if err != nil || !canMove(s.State) {
		return m, err
	}

	var rows []row
	if err := t.list(&rows, selectTask, id); err != nil {
		return m, err
	}

	was := rows[0].task()
	e, err := decide(was)
	if err != nil || e.None {
		m.Done = err == nil
		return m, err
	}
	if err := errors.Join(t.checkSpace(), t.checkKey(&e, was, now)); err != nil {
		return m, err
	}

	to := editedTask(was, &e, now)
	keepsLane := to.Lane == was.Lane && taskspec.HoldsLane(was.State)
	due := to.RunAt
	if !e.Due && (was.State == jobs.Pending || was.State == jobs.Blocked && !was.Waits) {
		due = now // it was due before the edit, whatever the clock says now
	}

	to.State = taskspec.InitialState(due, now, was.Waits, to.Lane != "" && !keepsLane)
	if was.State == jobs.Retrying && to.State == jobs.Scheduled && to.Lane == was.Lane {
		to.State = was.State // keep the state retrying: a scheduled task would lose its lane
	}
	if to.State == was.State && !e.Due {
		to.UpdatedAt = was.UpdatedAt
	}
	if err := t.rewrite(s, &to, settings{depends: was.Depends, waits: waitsValue(to.State, was.Waits)}); err != nil {
		return m, err
	}
	if e.Input {
		if err := t.setInput(id, e.Spec.Input); err != nil {
			return m, err
		}
	}
	if err := errors.Join(t.changeKey(&was, &to), t.record(id, TaskChange{At: now, By: by, Action: ActionEdit, Text: e.Text})); err != nil {
		return m, err
	}

	if err := t.freeLanesOf(was.Lane, to.Lane, now); err != nil {
		return m, err
	}

	m.Done = true
	m.State, err = t.state(id)
	return m, err
}

func (t *tx) rewrite(s taskStatus, to *jobs.Task, with settings) error {
	values, err := appendDefinition(nil, to)
	if err != nil {
		return err
	}
	values = append(values, with.values(to)...)
	return t.execOne(rewriteTask, append(values, to.UpdatedAt.UnixMilli(), string(to.State), s.ID, s.Generation)...)
}

func editedTask(was jobs.Task, e *Edit, now time.Time) jobs.Task {
	to := taskspec.NewTask(&e.Spec, now)
	if !e.Due {
		to.RunAt = was.RunAt
	}
	if !e.Expiry {
		to.ExpiresAt = was.ExpiresAt
	}
	if !e.Input {
		to.InputBytes = was.InputBytes
	}
	return to
}

// checkKey returns an error if another task holds the new unique key.
func (t *tx) checkKey(e *Edit, was jobs.Task, now time.Time) error {
	if e.Spec.UniqueKey == "" || e.Spec.UniqueKey == was.UniqueKey {
		return nil
	}
	holder, err := t.holder(e.Spec.UniqueKey, now)
	if err == nil && holder != 0 {
		err = &jobs.Error{Kind: jobs.ErrConflict, What: fmt.Sprintf("task %d has the unique key %q", holder, e.Spec.UniqueKey)}
	}
	return err
}

// changeKey frees the old unique key of a task if the task has a new key, and
// stores how long the task holds its key.
func (t *tx) changeKey(was, to *jobs.Task) error {
	if was.UniqueKey != "" && was.UniqueKey != to.UniqueKey {
		if err := t.run(freeKey, was.UniqueKey, was.ID); err != nil {
			return err
		}
	}
	to.ID, to.CreatedAt = was.ID, was.CreatedAt
	return t.holdKey(to)
}

func (t *tx) setInput(id int64, input []byte) error {
	if err := t.run(deleteInput, id); err != nil || len(input) == 0 {
		return err
	}
	return t.run(insertInput, id, input)
}

// PutFirst gives waiting tasks a priority above that of all pending tasks of
// their queue, and of all tasks that wait for their lane. The first id gets the
// highest priority. A task whose priority is already high enough keeps it.
// PutFirst does not change tasks that run or have finished.
func (d *DB) PutFirst(ctx context.Context, ids []int64, by string, now time.Time) ([]jobs.ActionResult, error) {
	last := slices.Clone(ids)
	slices.Reverse(last)
	done, err := d.Apply(ctx, last, func(t *tx, id int64) (jobs.ActionResult, error) {
		return t.putFirst(id, by, now)
	})
	slices.Reverse(done)
	return done, err
}

func (t *tx) putFirst(id int64, by string, now time.Time) (jobs.ActionResult, error) {
	s, err := t.status(id)
	m := jobs.ActionResult{ID: id, State: s.State, Done: canMove(s.State)}
	if err != nil || !m.Done {
		return m, err
	}

	var rivals *int64
	if err := t.scan(selectRivals, []any{id, s.Queue, nullText(s.Lane)}, &rivals); err != nil || rivals == nil || s.Priority > *rivals {
		return m, err
	}

	to := min(*rivals+1, math.MaxInt32)
	if to == s.Priority {
		return m, nil
	}
	if err := t.execOne(raiseTask, to, id, s.Generation); err != nil {
		return m, err
	}

	return m, t.record(id, TaskChange{At: now, By: by, Action: ActionFirst, Text: fmt.Sprintf("priority %d", to)})
}
