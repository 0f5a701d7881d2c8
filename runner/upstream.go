package runner

import (
	"context"
	"fmt"

	"example.com/runner/jobs"
)

// Upstream returns the tasks that the task running with ctx waited for (jobs.After, jobs.AfterAny), by id, with their states and
// results: f.Result(task, nil) of a ResultFunc reads one. Those that were deleted since are missing. Outside of a running task it
// is an error of kind jobs.ErrInvalid.
func Upstream(ctx context.Context) ([]jobs.Task, error) {
	a := attemptFrom(ctx)
	if a == nil {
		return nil, fmt.Errorf("%w: Upstream is for the context of a running task", jobs.ErrInvalid)
	}
	if !a.task.Depends {
		return nil, nil
	}
	var tasks []jobs.Task
	err := a.e.r.store.Upstream(ctx, a.task.ID, func(t jobs.Task) error { tasks = append(tasks, t); return nil })
	return tasks, err
}
