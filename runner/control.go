package runner

import (
	"context"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

// ActionResult is what Cancel, Retry or Delete did with one task.
type ActionResult struct {
	ID    int64
	State jobs.State // now; empty if there is no such task
	Done  bool       // whether the task is as the call wants it, by this call or before it
	Taken bool       // Retry: whether another unfinished task has its unique key
}

func actionResults(list []db.Moved) []ActionResult {
	return convert(list, func(m db.Moved) ActionResult { return ActionResult(m) })
}

// CancelOptions say how to cancel.
type CancelOptions struct {
	Now    bool   // stop commands by KILL at once. Defaults to TERM, and KILL after the task's kill_after
	Reason string // kept as part of the task's error
}

// Cancel cancels tasks: those that wait at once; those that run are stopped by their worker, and Cancel returns before that has
// happened, with state running (use Await). A finished task stays as it is.
func (r *Runner) Cancel(ctx context.Context, ids []int64, options CancelOptions) ([]ActionResult, error) {
	text := "cancelled by " + r.user()
	if options.Reason != "" {
		text += ": " + options.Reason
	}
	moved, err := r.store.Cancel(ctx, ids, text, options.Now, now())
	r.notifier.Notify()
	return actionResults(moved), err
}

// Retry makes finished tasks wait again after in, as if they were new: attempts and losses are 0, expiry is cleared, history and
// output stay; so do the steps of a task that failed or was cancelled, while one that completed does all of them again. Tasks that are scheduled or retrying become due then, their counts kept. A running task is left alone.
func (r *Runner) Retry(ctx context.Context, ids []int64, in time.Duration) ([]ActionResult, error) {
	at := now()
	moved, err := r.store.Retry(ctx, ids, at.Add(in), at)
	r.notifier.Notify()
	return actionResults(moved), err
}

// RetryWithDependents is Retry that also makes those wait again that were cancelled, reason dependency, because of these tasks, and
// those that were cancelled because of them. They are in the answer too, each behind the task that brought it back.
func (r *Runner) RetryWithDependents(ctx context.Context, ids []int64, in time.Duration) ([]ActionResult, error) {
	at := now()
	moved, err := r.store.RetryWithDependents(ctx, ids, at.Add(in), at)
	r.notifier.Notify()
	return actionResults(moved), err
}

// Delete forgets finished tasks with their attempts and output. Others are left alone.
func (r *Runner) Delete(ctx context.Context, ids []int64) ([]ActionResult, error) {
	deleted, err := r.store.Delete(ctx, ids)
	return actionResults(deleted), err
}
