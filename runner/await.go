package runner

import (
	"cmp"
	"context"
	"time"

	"example.com/runner/jobs"
)

// Await waits until a task has finished and returns it. It works from any process, and across restarts of workers. The end of ctx ends the
// wait and does not touch the task. The error is jobs.ErrNotFound if the task does not exist or someone deletes it meanwhile. It is
// jobs.ErrReplaced if another file has replaced the database file.
func (r *Runner) Await(ctx context.Context, id int64) (jobs.Task, error) {
	notices, stop := r.notifier.SubscribeTask(ctx, id)
	defer stop()
	for {
		task, err := r.Get(ctx, id)
		if err == nil && task.State.Finished() {
			return task, nil
		}
		if gone := r.store.Replaced(); gone != nil || err != nil {
			return task, cmp.Or(gone, err)
		}
		if err := pause(ctx, notices, time.Second); err != nil {
			return task, err
		}
	}
}

// Changes calls look at once. It calls look again after each commit of any process, and at least every second. It returns when look returns
// done or an error, or when ctx ends. It returns jobs.ErrReplaced if another file has replaced the database file.
func (r *Runner) Changes(ctx context.Context, look func() (done bool, err error)) error {
	notices, stop := r.notifier.Subscribe(ctx)
	defer stop()
	for {
		done, err := look()
		if err == nil && done {
			return nil
		}
		if gone := r.store.Replaced(); gone != nil || err != nil {
			return cmp.Or(gone, err)
		}
		if err := pause(ctx, notices, time.Second); err != nil {
			return err
		}
	}
}

// pause waits for a notice, but at most for d. It returns an error if ctx ends.
func pause(ctx context.Context, notices <-chan struct{}, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-notices:
		return nil
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
