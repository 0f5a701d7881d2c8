package db

import (
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// Somebody can pause a task that waits. It is then blocked with waits = 1, as
// if it waited for another task, and has a row in the table task_pauses. So no
// worker claims the task, even when it is due, and the task gives up its lane.
// When a task on which it depends ends, this dependency is closed as usual. The
// task can still expire, or be cancelled because a dependency fails. The row is
// deleted when the task is resumed or ends.

// insertTaskPause stores the pause of task [1] at time [2] by user [3] with
// reason [4]. A row may exist already, if plain SQL has changed the state of a
// paused task.
var (
	insertTaskPause = command(`INSERT INTO {task_pauses} (task_id, paused_at, paused_by, reason) VALUES (?, ?, ?, ?)
ON CONFLICT (task_id) DO UPDATE SET paused_at = excluded.paused_at, paused_by = excluded.paused_by, reason = excluded.reason`)
	deleteTaskPause = command(`DELETE FROM {task_pauses} WHERE task_id = ?`)
)

// waitsForTasks reports whether task [1] has an open dependency.
var waitsForTasks = query(`SELECT EXISTS (SELECT 1 FROM {dependencies} WHERE task_id = ? AND open = 1)`)

// PauseTask keeps a waiting task from starting until ResumeTask. It doesn't
// change a task that runs or has finished. If the task is paused already, the
// user, time and reason of its first pause stay.
func PauseTask(by, reason string, now time.Time) Action {
	change := TaskChange{At: now, By: by, Action: ActionPause, Text: taskspec.CutError(reason)}
	return func(t *tx, id int64) (jobs.ActionResult, error) { return t.pauseTask(id, change) }
}

func (t *tx) pauseTask(id int64, c TaskChange) (jobs.ActionResult, error) {
	s, err := t.changeable(id, c.At)
	m := jobs.ActionResult{ID: id, State: s.State, Done: bool(s.Paused)}
	if err != nil || bool(s.Paused) || !canMove(s.State) {
		return m, err
	}
	if err := t.move(id, s.Generation, move{to: jobs.Blocked, waits: true}, c.At); err != nil {
		return m, err
	}
	if err := t.addPause(id, c); err != nil {
		return m, err
	}
	if s.Lane != "" && taskspec.HoldsLane(s.State) {
		err = t.freeLane(string(s.Lane), c.At)
	}

	return jobs.ActionResult{ID: id, State: jobs.Blocked, Done: true}, err
}

// addPause stores the pause of a task, and records it as a change.
func (t *tx) addPause(id int64, c TaskChange) error {
	if err := t.run(insertTaskPause, id, c.At.UnixMilli(), c.By, nullText(c.Text)); err != nil {
		return err
	}
	return t.record(id, c)
}

// ResumeTask ends the pause of a task. If all its dependencies have ended, the
// task gets the state that a new task would get. A task that isn't paused stays
// unchanged, and counts as done unless it runs or has finished.
func ResumeTask(by string, now time.Time) Action {
	return func(t *tx, id int64) (jobs.ActionResult, error) {
		return t.resumeTask(id, TaskChange{At: now, By: by, Action: ActionResume})
	}
}

func (t *tx) resumeTask(id int64, c TaskChange) (jobs.ActionResult, error) {
	s, err := t.status(id)
	m := jobs.ActionResult{ID: id, State: s.State, Done: canMove(s.State)}
	if err != nil || !bool(s.Paused) {
		return m, err
	}
	if err := t.run(deleteTaskPause, id); err != nil {
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
	if err := t.release(s.waitingTask, &lanes, c.At); err != nil {
		return m, err
	}
	if err := t.freeLanes(lanes, c.At); err != nil {
		return m, err
	}

	m.State, err = t.state(id)
	return m, err
}
