package db

import (
	"context"
	"time"
)

// A change is a record of what a user has changed in a task: its settings, its
// priority or its pause. The last changes of a task stay until
// the task is deleted.

// maxChanges is how many changes of a task are kept.
const maxChanges = 20

// insertChange stores that user [3] changed task [1] at time [2] by action [4];
// [5] is the text. trimChanges deletes all but the last [2] changes of a task.
var (
	insertChange = command(`INSERT INTO {task_changes} (task_id, seq, made_at, made_by, action, text)
VALUES (?1, (SELECT coalesce(max(seq), 0) + 1 FROM {task_changes} WHERE task_id = ?1), ?2, ?3, ?4, ?5)`)
	trimChanges = command(`DELETE FROM {task_changes} WHERE task_id = ?1
	AND seq <= (SELECT max(seq) FROM {task_changes} AS last WHERE last.task_id = ?1) - ?2`)
	selectChanges = query(`SELECT made_at, made_by, action, text FROM {task_changes} WHERE task_id = ? ORDER BY seq`)
)

// These are the possible values of TaskChange.Action.
const (
	ActionEdit   = "edit"
	ActionFirst  = "first"
	ActionPause  = "pause"
	ActionResume = "resume"
)

// TaskChange is a change of a task by a user.
type TaskChange struct {
	At     time.Time
	By     string
	Action string // edit, first, pause or resume
	Text   string // new values, or the reason, for people; may be empty
}

func (t *tx) record(id int64, c TaskChange) error {
	err := t.run(insertChange, id, c.At.UnixMilli(), c.By, c.Action, nullText(c.Text))
	if err == nil {
		err = t.run(trimChanges, id, maxChanges)
	}
	return err
}

// TaskChanges lists the last changes of a task, oldest first.
func (d *DB) TaskChanges(ctx context.Context, id int64) ([]TaskChange, error) {
	type changeRow struct {
		At     number `db:"made_at"`
		By     string `db:"made_by"`
		Action string `db:"action"`
		Text   text   `db:"text"`
	}
	return readAs(ctx, d, func(r *changeRow) TaskChange {
		return TaskChange{At: r.At.time(), By: r.By, Action: r.Action, Text: string(r.Text)}
	}, selectChanges, id)
}

// changeable returns the status of a task before a change. It first links a
// task that plain SQL has inserted to its dependencies, which may cancel it.
func (t *tx) changeable(id int64, now time.Time) (taskStatus, error) {
	s, err := t.status(id)
	if err != nil || s.Generation != 0 || !bool(s.Depends) || !canMove(s.State) {
		return s, err
	}

	var lanes laneSet
	waits, broken, err := t.link(id, now)
	if err == nil && !waits && broken == nil {
		s.Generation = 1 // link has raised it
		err = t.release(s.waitingTask, &lanes, now)
	}
	if err == nil {
		err = t.afterEnd(broken, now)
	}
	if err == nil {
		err = t.freeLanes(lanes, now)
	}
	if err != nil {
		return s, err
	}
	return t.status(id)
}
