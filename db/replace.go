package db

import (
	"fmt"
	"time"

	"example.com/runner/internal/errcode"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// replace gives the unfinished task id the settings of the new task, unless it
// has started.
func (t *tx) replace(id int64, spec *jobs.Spec, task jobs.Task, o ordering, now time.Time) (jobs.Enqueued, error) {
	s, err := t.status(id)
	if err != nil || !canMove(s.State) || bool(s.Started) {
		return jobs.Enqueued{ID: id, Kept: true}, err
	}

	for on := range o.open {
		if on >= id { // so that no tasks wait for each other
			return jobs.Enqueued{}, &jobs.Error{Kind: jobs.ErrConflict, Code: errcode.UniqueKeyHolder, Subject: fmt.Sprint(id),
				What: fmt.Sprintf("task %d cannot wait for task %d, which is not older", id, on),
				Why:  []string{"its unique key is that of the new task, which would replace it", "nothing was changed"},
				Hint: "cancel task " + fmt.Sprint(id)}
		}
	}

	lane := string(s.Lane)
	keepsLane := s.State == jobs.Pending && lane == task.Lane
	waits := o.waits() || o.broken != "" || bool(s.Paused) || o.paused
	state := taskspec.InitialState(task.RunAt, now, waits, task.Lane != "" && !keepsLane)
	task.State = state
	if err := t.rewrite(s, &task, settings{depends: o.hasDependencies(), waits: waitsValue(state, waits)}); err != nil {
		return jobs.Enqueued{}, err
	}
	if err := t.setInput(id, spec.Input); err != nil {
		return jobs.Enqueued{}, err
	}

	one := jobs.Enqueued{ID: id, Replaced: true}
	task.ID = id
	if err := t.holdKey(&task); err != nil {
		return one, err
	}
	if o.paused && !bool(s.Paused) {
		if err := t.addPause(id, TaskChange{At: now, By: task.CreatedBy, Action: ActionPause}); err != nil {
			return one, err
		}
	}
	if _, err := t.exec(deleteWaiting, id); err != nil {
		return one, err
	}
	if err := t.addDependencies(id, o.waiting); err != nil {
		return one, err
	}

	var lanes laneSet
	lanes.add(lane)
	lanes.add(task.Lane)
	if o.broken != "" {
		e, err := t.cancelWaiting(id, jobs.ReasonDependency, o.broken, now)
		if err == nil {
			err = t.afterEnd([]end{e}, now)
		}
		if err != nil {
			return one, err
		}
	}

	return one, t.freeLanes(lanes, now)
}
