package db

import (
	"fmt"
	"time"

	"example.com/runner/internal/errcode"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// A new task replaces the task that holds its unique key: the old task keeps
// its id, creation time and history, and gets the new settings. A task that has
// started or finished stays as it is, and the caller gets it as Kept.
//
// What happens to the rest of the old task:
//   - Its pause stays: a resume ends it, and no replacement. So the task waits
//     if the old one or the new one is paused.
//   - Its stdin and its dependencies go, also if the new task has none.
//   - Its lane stays its own only if it holds the lane that the new task wants.
//   - The time for which it holds the key is never shortened (see holdKey).
//
// The order of the steps:
//   - rewrite is the first write, because it names the state and the generation
//     that status has read.
//   - deleteWaiting removes all dependencies, so it comes before the new ones.
//   - A task with a broken dependency is written as a waiting one and cancelled
//     afterwards, because the cancellation clears its pause and dependencies.
//   - The lanes come last: the old one may be free now, and the task may get
//     the new one at once, but not if it was cancelled.

// replace gives task id, which holds the unique key, the settings of the new
// task.
func (t *tx) replace(id int64, spec *jobs.Spec, task jobs.Task, o ordering, now time.Time) (jobs.Enqueued, error) {
	s, err := t.status(id)
	if err != nil || !canMove(s.State) || bool(s.Started) {
		return jobs.Enqueued{ID: id, Kept: true}, err
	}
	if err := o.checkOlder(id); err != nil {
		return jobs.Enqueued{}, err
	}

	task.ID = id
	keepsLane := s.State == jobs.Pending && task.Lane == string(s.Lane)
	waits := o.waits() || o.broken != "" || bool(s.Paused) || o.paused
	task.State = taskspec.InitialState(task.RunAt, now, waits, task.Lane != "" && !keepsLane)
	err = t.rewrite(s, &task, settings{depends: o.hasDependencies(), waits: waitsValue(task.State, waits)})
	if err == nil {
		err = t.setInput(id, spec.Input)
	}
	if err == nil {
		err = t.holdKey(&task)
	}
	if err == nil && o.paused && !bool(s.Paused) {
		err = t.addPause(id, TaskChange{At: now, By: task.CreatedBy, Action: ActionPause})
	}
	if err == nil {
		_, err = t.exec(deleteWaiting, id)
	}
	if err == nil {
		err = t.addDependencies(id, o.waiting)
	}
	if err == nil && o.broken != "" {
		err = t.cancelBroken(id, o.broken, now)
	}
	if err == nil {
		err = t.freeLanesOf(string(s.Lane), task.Lane, now)
	}

	return jobs.Enqueued{ID: id, Replaced: true}, err
}

// checkOlder returns an error unless all open dependencies are older than task
// id. So no tasks wait for each other.
func (o *ordering) checkOlder(id int64) error {
	for on := range o.open {
		if on >= id {
			return &jobs.Error{Kind: jobs.ErrConflict, Code: errcode.UniqueKeyHolder, Subject: fmt.Sprint(id),
				What: fmt.Sprintf("task %d cannot wait for task %d, which is not older", id, on),
				Why:  []string{"its unique key is that of the new task, which would replace it", "nothing was changed"},
				Hint: "cancel task " + fmt.Sprint(id)}
		}
	}
	return nil
}

// cancelBroken cancels a waiting task because of a dependency that did not
// complete.
func (t *tx) cancelBroken(id int64, text string, now time.Time) error {
	e, err := t.cancelWaiting(id, jobs.ReasonDependency, text, now)
	if err != nil {
		return err
	}
	return t.afterEnd([]end{e}, now)
}

// freeLanesOf gives the lanes of a task from before and after a change of its
// settings to the tasks that may have them now.
func (t *tx) freeLanesOf(was, is string, now time.Time) error {
	var lanes laneSet
	lanes.add(was)
	lanes.add(is)
	return t.freeLanes(lanes, now)
}
