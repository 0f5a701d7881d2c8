package db

import (
	"context"
	"time"

	"example.com/runner/internal/lifecycle"
	"example.com/runner/jobs"
)

// A hold keeps a task from starting until somebody releases the task. The task is blocked with waits = 1, as if it waited for another task,
// and has a row in the table holds. So no worker claims the task, even when it is due, and the task gives up its lane. When a task on which
// it depends ends, this dependency is closed as usual. The task can still expire, or be cancelled because a dependency fails. The row in
// holds is deleted when the task is released or ends.

// holdTask blocks task [2] of generation [3] at time [1]. It changes nothing if the task runs or has finished.
var holdTask = command(`UPDATE {tasks} SET state = 'blocked', waits = 1, updated_at = ?,
	generation_id = generation_id + CASE WHEN state = 'blocked' THEN 0 ELSE 1 END
WHERE id = ? AND generation_id = ? AND (state = 'scheduled' OR state = 'pending' OR state = 'blocked' OR state = 'retrying')`)

// insertHold stores the hold of task [1]. [2] is the time, [3] is the user, and [4] is the reason. A row may exist already, if plain SQL
// has changed the state of a held task. deleteHold deletes the hold of task [1].
var (
	insertHold = command(`INSERT INTO {holds} (task_id, held_since, held_by, reason) VALUES (?, ?, ?, ?)
ON CONFLICT (task_id) DO UPDATE SET held_since = excluded.held_since, held_by = excluded.held_by, reason = excluded.reason`)
	deleteHold = command(`DELETE FROM {holds} WHERE task_id = ?`)
)

// waitsForTasks reports whether task [1] has an open dependency.
var waitsForTasks = query(`SELECT EXISTS (SELECT 1 FROM {dependencies} WHERE task_id = ? AND open = 1)`)

// Hold keeps waiting tasks from starting until Release. It does not change tasks that run or have finished. If a task is held
// already, the user, time and reason of its first hold stay.
func (d *DB) Hold(ctx context.Context, ids []int64, by, reason string, now time.Time) ([]ActionResult, error) {
	reason = lifecycle.CutError(reason)
	return d.move(ctx, ids, func(t *tx, id int64) ([]ActionResult, error) {
		m, err := t.hold(id, TaskChange{At: now, By: by, Action: ActionHold, Text: reason})
		return []ActionResult{m}, err
	})
}

func (t *tx) hold(id int64, c TaskChange) (ActionResult, error) {
	s, err := t.changeable(id, c.At)
	m := ActionResult{ID: id, State: s.State, Done: bool(s.Held)}
	if err != nil || bool(s.Held) || !movable(s.State) {
		return m, err
	}
	if err := t.one(holdTask, c.At.UnixMilli(), id, s.Generation); err != nil {
		return m, err
	}
	if err := t.addHold(id, c); err != nil {
		return m, err
	}
	if s.Lane != "" && lifecycle.HoldsLane(s.State) {
		err = t.freeLane(string(s.Lane), c.At)
	}
	return ActionResult{ID: id, State: jobs.Blocked, Done: true}, err
}

// addHold stores a hold, and records it in the table task_changes.
func (t *tx) addHold(id int64, c TaskChange) error {
	if err := t.run(insertHold, id, c.At.UnixMilli(), c.By, nullText(c.Text)); err != nil {
		return err
	}
	return t.record(id, c)
}

// Release ends the holds of tasks. If all dependencies of a task have ended, the task gets the state that a new task would get. Release
// does not change tasks without a hold. It reports such a task as done, unless the task runs or has finished.
func (d *DB) Release(ctx context.Context, ids []int64, by string, now time.Time) ([]ActionResult, error) {
	return d.move(ctx, ids, func(t *tx, id int64) ([]ActionResult, error) {
		m, err := t.release(id, TaskChange{At: now, By: by, Action: ActionRelease})
		return []ActionResult{m}, err
	})
}

func (t *tx) release(id int64, c TaskChange) (ActionResult, error) {
	s, err := t.status(id)
	m := ActionResult{ID: id, State: s.State, Done: movable(s.State)}
	if err != nil || !bool(s.Held) {
		return m, err
	}
	if err := t.run(deleteHold, id); err != nil {
		return m, err
	}
	if err := t.record(id, c); err != nil {
		return m, err
	}
	var waits bool
	if err := t.scan(waitsForTasks, []any{id}, &waits); err != nil || waits {
		return m, err
	}
	var lanes laneSet
	if err := t.free(follower{ID: id, Generation: s.Generation, Lane: s.Lane, RunAt: s.RunAt, Due: s.Due}, &lanes, c.At); err != nil {
		return m, err
	}
	if err := t.freeLanes(lanes, c.At); err != nil {
		return m, err
	}
	m.State, err = t.state(id)
	return m, err
}
