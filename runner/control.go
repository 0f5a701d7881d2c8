package runner

import (
	"context"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

// CancelOptions are the options of Cancel.
type CancelOptions struct {
	Kill   bool   // whether commands get KILL at once; by default they get TERM, and KILL after the task's kill_after
	Reason string // text that becomes part of the task's error
}

// Cancel cancels tasks. It cancels a waiting task at once. A running task is
// stopped by its worker. Cancel does not wait for the worker, so the result of
// a running task has the state running; call Await to wait for its end. Cancel
// does not change a finished task.
func (r *Runner) Cancel(ctx context.Context, ids []int64, options CancelOptions) ([]jobs.ActionResult, error) {
	return r.apply(ctx, ids, r.cancelAction(options))
}

func (r *Runner) cancelAction(options CancelOptions) db.Action {
	text := "by " + db.CurrentUser()
	if options.Reason != "" {
		text += ": " + options.Reason
	}
	return db.Cancel(text, options.Kill, now())
}

// RetryOptions are the options of Retry. The zero value retries at once.
type RetryOptions struct {
	In         time.Duration // delay until the tasks are due
	Dependents bool          // also the tasks that were cancelled because one of these did not complete
}

// Retry makes finished tasks due again, as if they were new: it sets the counts
// of attempts and losses to 0 and clears the expiry. The records and the output
// of past attempts stay. So do the steps of a task that failed or was
// cancelled; one that completed does all of its steps again.
//
// A scheduled or retrying task becomes due, too, and keeps its counts. Retry
// doesn't change a running task. The task doesn't wait for its dependencies
// again, even if they are retried, too. With Dependents, Retry also retries
// tasks that depend on these, directly or through others, and were cancelled
// with the reason dependency; their results follow that of the task on which
// they depend. The error is jobs.ErrInvalid for a negative delay.
func (r *Runner) Retry(ctx context.Context, ids []int64, options RetryOptions) ([]jobs.ActionResult, error) {
	return r.retry(options, func(act db.Action) ([]jobs.ActionResult, error) { return r.store.Apply(ctx, ids, act) })
}

func (r *Runner) retry(options RetryOptions, apply func(db.Action) ([]jobs.ActionResult, error)) ([]jobs.ActionResult, error) {
	if options.In < 0 {
		return nil, invalidValue("0 for now, or a positive duration", "the delay of the retry is negative: %v", options.In)
	}

	at := now()
	results, err := apply(db.Retry(at.Add(options.In), at, options.Dependents))
	r.store.Notify()
	return results, err
}

// PauseOptions are the options of Pause.
type PauseOptions struct {
	Reason string // text for people, such as the page of the task; at most 8 KiB, the rest is cut
}

// Pause keeps waiting tasks from starting until Resume. A paused task is
// blocked. It gives up its lane, but keeps its unique key. It can still expire,
// and is still cancelled if a task that it depends on doesn't complete. Pause
// doesn't change tasks that run or have finished; their results don't have Done
// set. If a task is paused already, its first pause stays.
func (r *Runner) Pause(ctx context.Context, ids []int64, options PauseOptions) ([]jobs.ActionResult, error) {
	return r.apply(ctx, ids, db.PauseTask(db.CurrentUser(), options.Reason, now()))
}

// Resume ends the pause of tasks. A resumed task starts under the same
// conditions as a new task. Resume doesn't change tasks that aren't paused.
func (r *Runner) Resume(ctx context.Context, ids []int64) ([]jobs.ActionResult, error) {
	return r.apply(ctx, ids, db.ResumeTask(db.CurrentUser(), now()))
}

func (r *Runner) apply(ctx context.Context, ids []int64, act db.Action) ([]jobs.ActionResult, error) {
	results, err := r.store.Apply(ctx, ids, act)
	r.store.Notify()
	return results, err
}

// Edit changes the options or the arguments of a waiting task. Of a running or
// finished task only the metadata can change. A worker that starts the task at
// the same moment sees all changes or none. Edit returns the changed task.
//
// An option may read the Spec, which has the present settings; it runs while
// nobody else can write, so it must be quick. To set new arguments:
//
//	spec := SendMail.With(mail)
//	task, err := r.Edit(ctx, id, func(s *jobs.Spec) { s.Args, s.Err = spec.Args, spec.Err })
//
// The job of a task and the tasks that it waits for can't change. If the due
// time changes, the expiry moves by as much. The error is jobs.ErrNotFound if
// there is no such task, jobs.ErrConflict if it runs or has finished, or if
// another task holds its new unique key, and jobs.ErrInvalid for an invalid
// option. After an error nothing has changed.
func (r *Runner) Edit(ctx context.Context, id int64, options ...jobs.Option) (jobs.Task, error) {
	if _, err := r.store.Edit(ctx, id, db.CurrentUser(), now(), options); err != nil {
		return jobs.Task{}, err
	}
	r.store.Notify()
	return r.Get(ctx, id)
}

// Delete deletes finished tasks with their attempts and output. It leaves
// unfinished tasks, and finished ones that an unfinished task depends on: that
// task will read their results.
func (r *Runner) Delete(ctx context.Context, ids []int64) ([]jobs.ActionResult, error) {
	return r.store.Apply(ctx, ids, db.Delete())
}
