package runner

import (
	"cmp"
	"context"
	"time"

	"example.com/runner/jobs"
)

// Await waits until a task has finished and returns it. It works from any
// process, and across restarts of workers. When ctx ends, Await stops waiting
// and does not change the task.
//
// A handler that calls Await keeps its slot. If handlers wait in all slots of
// the workers, the tasks that they wait for never start. With only one slot,
// this happens as soon as one handler waits for a task that has not started.
// There are two ways to wait without a slot. Let the task of the handler wait
// for the other task (jobs.DependsOn), and read the result with Upstream. Or
// let the handler return jobs.Snooze until the other task has finished.
//
// The error is jobs.ErrNotFound if the task does not exist, or if someone
// deletes it during the wait. It is jobs.ErrReplaced if another file has
// replaced the database file.
func (r *Runner) Await(ctx context.Context, id int64) (task jobs.Task, err error) {
	err = r.changes(ctx, func() (bool, error) {
		// Read only the state: the row may have megabytes of arguments, and
		// this runs after each commit.
		states, err := r.store.CountByState(ctx, jobs.Filter{IDs: []int64{id}})
		if err != nil {
			return false, err
		}

		for state := range states {
			if !state.Finished() {
				return false, nil
			}
		}

		task, err = r.Get(ctx, id)
		return task.State.Finished(), err
	})
	return task, err
}

// changes is admin.Changes.
func (r *Runner) changes(ctx context.Context, check func() (done bool, err error)) error {
	if check == nil {
		return invalidValue("a function that reports whether to stop", "the function check is nil")
	}

	notices, stop := r.store.Subscribe(ctx)
	defer stop()

	for {
		done, err := check()
		if err == nil && done {
			return nil
		}
		if gone := r.store.Replaced(); gone != nil || err != nil {
			return cmp.Or(gone, err)
		}
		if err := r.wait(ctx, notices, time.Second); err != nil {
			return err
		}
	}
}

// wait waits until it receives from notices, but at most for the duration d. It
// returns an error if the Runner closes or ctx ends before that.
func (r *Runner) wait(ctx context.Context, notices <-chan struct{}, d time.Duration) error {
	select {
	case <-notices:
	case <-time.After(d):
	case <-r.closing:
		return jobs.ErrClosed
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
