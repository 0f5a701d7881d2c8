package db

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"time"

	"example.com/runner/db/internal/engine"
	"example.com/runner/internal/errcode"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// A dependency is a row: task task_id waits for task on_id. It's open until
// that task has finished. A task with an open dependency is blocked, and its
// column waits is 1. This file adds, opens and reads dependencies; end.go
// closes them.

// insertDependency makes task [1] depend on task [2]. [3] says whether any
// outcome releases task [1], and [4] whether the dependency is open: only then
// it delays the task.
var insertDependency = command(`INSERT INTO {dependencies} (task_id, on_id, any_outcome, open) VALUES (?, ?, ?, ?)`)

var deleteWaiting = command(`DELETE FROM {dependencies} WHERE task_id = ?`)

// selectFollowers lists the tasks that wait for task [1], and says whether each
// also waits for others or for its resume. It leaves out tasks that plain SQL
// has moved out of their state. Indexes: dependencies_on, dependencies_open.
var selectFollowers = query(`SELECT ` + waitingColumns + `, any_outcome,
	EXISTS (SELECT 1 FROM {dependencies} AS other
	WHERE other.open = 1
	AND other.task_id = dependencies.task_id AND other.on_id <> dependencies.on_id)
	OR EXISTS (SELECT 1 FROM {task_pauses} WHERE task_pauses.task_id = dependencies.task_id) AS waits
FROM {dependencies} JOIN {tasks} ON tasks.id = dependencies.task_id WHERE on_id = ? AND open = 1 AND tasks.waits = 1`)

// closeOn closes the dependencies of others on task [1], and closeAll those of
// task [1] on others.
var (
	closeOn  = command(`UPDATE {dependencies} SET open = 0 WHERE on_id = ? AND open = 1`)
	closeAll = command(`UPDATE {dependencies} SET open = 0 WHERE task_id = ? AND open = 1`)
)

// reopen makes the dependencies of task [1] on unfinished tasks open again.
var reopen = command(`UPDATE {dependencies} SET open = 1 WHERE task_id = ?
	AND EXISTS (SELECT 1 FROM {tasks} WHERE tasks.id = on_id AND tasks.finished_at IS NULL)`)

// selectGone returns the first task that task [1] depends on and that was
// deleted, or 0.
var selectGone = query(`SELECT coalesce(min(on_id), 0) FROM {dependencies} WHERE task_id = ?
	AND NOT EXISTS (SELECT 1 FROM {tasks} WHERE tasks.id = on_id)`)

// selectRevivable lists the tasks that depend on task [1] and were cancelled
// because of a dependency, but for those that another dependency would cancel
// again. Index: dependencies_on.
var selectRevivable = query(`SELECT tasks.id FROM {dependencies} JOIN {tasks} ON tasks.id = dependencies.task_id
WHERE dependencies.on_id = ? AND tasks.state = 'cancelled' AND tasks.outcome ->> 'reason' = 'dependency'
	AND NOT EXISTS (SELECT 1 FROM {dependencies} AS other JOIN {tasks} AS ended ON ended.id = other.on_id
		WHERE other.task_id = tasks.id AND other.any_outcome = 0 AND (ended.state = 'failed' OR ended.state = 'cancelled'))
ORDER BY tasks.id`)

// These statements are for a task that plain SQL has inserted. selectBroken
// returns the first dependency of task [1] that can't be satisfied any more,
// with the state of its task; the state is empty if that task was deleted.
// closeEnded closes the dependencies of task [1] on finished tasks, and opens
// the others.
var (
	selectBroken = query(`SELECT on_id, coalesce(tasks.state, '') FROM {dependencies} LEFT JOIN {tasks} ON tasks.id = on_id
	WHERE task_id = ? AND (tasks.id IS NULL OR any_outcome = 0 AND (tasks.state = 'failed' OR tasks.state = 'cancelled'))
	ORDER BY on_id LIMIT 1`)
	closeEnded = command(`UPDATE {dependencies} SET open = CASE WHEN EXISTS (SELECT 1 FROM {tasks} WHERE tasks.id = on_id
	AND tasks.finished_at IS NULL) THEN 1 ELSE 0 END WHERE task_id = ?`)
)

// selectDependencies lists up to [2] tasks that task [1] depends on, and
// selectDependents those that depend on it.
var (
	selectDependencies = query(`SELECT on_id AS id, any_outcome <> 0 AS any_outcome, coalesce(tasks.state, '') AS state
	FROM {dependencies} LEFT JOIN {tasks} ON tasks.id = on_id
WHERE task_id = ? ORDER BY on_id LIMIT ?`)
	selectDependents = query(`SELECT task_id AS id, any_outcome <> 0 AS any_outcome, coalesce(tasks.state, '') AS state
	FROM {dependencies} LEFT JOIN {tasks} ON tasks.id = task_id
WHERE on_id = ? ORDER BY task_id LIMIT ?`)
)

// selectUpstream lists the tasks that task [1] waited for. Index: primary key.
var selectUpstream = query(selectTasks + ` JOIN {dependencies} ON dependencies.on_id = tasks.id WHERE dependencies.task_id = ?
	ORDER BY on_id`)

// follower is a task that depends on a task that has just ended.
type follower struct {
	waitingTask
	AnyOutcome boolean `db:"any_outcome"`
	Waits      boolean `db:"waits"` // whether the follower also waits for another task or is paused
}

type waiting struct {
	after, afterAny []int64
	open            map[int64]bool // by id in after and afterAny: whether that task is unfinished
	broken          string         // why the new task is cancelled at once; empty if it isn't
}

// waitsFor reads the states of the tasks that a new task depends on. One may
// have finished in a way that breaks the dependency.
func (t *tx) waitsFor(after, afterAny []int64) (waiting, error) {
	w := waiting{after: after, afterAny: afterAny, open: map[int64]bool{}}
	for i, id := range append(after[:len(after):len(after)], afterAny...) {
		if _, double := w.open[id]; double {
			continue
		}

		state, err := t.state(id)
		switch {
		case err != nil:
			return w, err
		case state == "":
			return w, &jobs.Error{Kind: jobs.ErrNotFound, Code: errcode.NoTask, Subject: fmt.Sprint(id),
				What: fmt.Sprintf("no task %d", id), Why: []string{"nothing was enqueued"}}
		}

		w.open[id] = !state.Finished()
		if state.Finished() && !taskspec.Releases(state, i >= len(after)) && w.broken == "" {
			w.broken = brokenText(id, state)
		}
	}

	if w.broken != "" {
		for id := range w.open {
			w.open[id] = false
		}
	}

	return w, nil
}

func (w *waiting) waits() bool {
	for _, open := range w.open {
		if open {
			return true
		}
	}
	return false
}

// addDependencies stores those of the new task id. For a task in both lists,
// after counts: only its completion releases the new one.
func (t *tx) addDependencies(id int64, w waiting) error {
	for i, on := range append(w.after[:len(w.after):len(w.after)], w.afterAny...) {
		open, left := w.open[on]
		if !left {
			continue
		}

		delete(w.open, on)
		if open {
			t.used.dependencies = true
		}
		if err := t.run(insertDependency, id, on, i >= len(w.after), open); err != nil {
			return err
		}
	}
	return nil
}

// adopt links a due task that plain SQL has inserted to its dependencies, and
// releases it if none is open. It returns the task if a dependency is broken.
func (t *tx) adopt(r *row, lanes *laneSet, now time.Time) ([]end, error) {
	waits, broken, err := t.link(r.ID, now)
	if err == nil && !waits && broken == nil {
		err = t.release(waitingTask{ID: r.ID, Generation: 1, Lane: r.Lane, Due: true}, lanes, now) // link has made it generation 1
	}
	return broken, err
}

// link reads the dependencies of a task that plain SQL has inserted, and blocks
// the task. It says whether the task waits for others. If a dependency is
// broken, link cancels the task instead and returns it, for afterEnd.
func (t *tx) link(id int64, now time.Time) (waits bool, broken []end, err error) {
	var on int64
	var state jobs.State
	switch err := t.scan(selectBroken, []any{id}, &on, &state); {
	case err == nil:
		e, err := t.cancelWaiting(id, jobs.ReasonDependency, brokenText(on, cmp.Or(state, "was deleted")), now)
		return false, []end{e}, err
	case engine.NoRow(err) != nil:
		return false, nil, err
	}

	if err := t.run(closeEnded, id); err != nil {
		return false, nil, err
	}
	if err := t.scan(waitsForTasks, []any{id}, &waits); err != nil {
		return false, nil, err
	}

	return waits, nil, t.move(id, 0, move{to: jobs.Blocked, waits: waits}, now)
}

// Dependency is a dependency between a given task and another task.
type Dependency struct {
	ID    int64      `db:"id"`
	Any   bool       `db:"any_outcome"` // whether the task that waits may start even if the other has failed or was cancelled
	State jobs.State `db:"state"`       // state of the other task; empty if the other task was deleted
}

// Dependencies lists the tasks that a task waits or has waited for, and the
// waiters that wait or have waited for it, at most limit each; 0 is no limit.
func (d *DB) Dependencies(ctx context.Context, id int64, limit int) (waitsFor, waiters []Dependency, err error) {
	limit = cmp.Or(limit, math.MaxInt32)
	if waitsFor, err = readRows[Dependency](ctx, d, selectDependencies, id, limit); err == nil {
		waiters, err = readRows[Dependency](ctx, d, selectDependents, id, limit)
	}
	return waitsFor, waiters, err
}

// Upstream calls each for every task that a task waited for, by id, until a
// call returns an error. It skips deleted tasks.
func (d *DB) Upstream(ctx context.Context, id int64, each func(jobs.Task) error) error {
	rows, err := d.read.QueryxContext(ctx, d.sql.Text(selectUpstream), id)
	if err != nil {
		return d.explainRead(ctx, err)
	}
	defer rows.Close()

	for rows.Next() {
		var r row
		if err := rows.StructScan(&r); err != nil {
			return d.explainRead(ctx, err)
		}
		if err := each(r.task()); err != nil {
			return err
		}
	}

	return d.explainRead(ctx, rows.Err())
}
