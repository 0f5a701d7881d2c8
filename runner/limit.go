package runner

import (
	"cmp"
	"context"

	"example.com/runner/internal/errcode"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// LimitStatus is a limit and its use.
type LimitStatus = jobs.LimitStatus

// SetLimit limits how many tasks of a queue, job or lane, or of the whole
// database, run at once, and how often they start. A lane without a limit runs
// one task at a time. The limit holds for all workers together. SetLimit
// replaces the whole limit of its target, and it is idempotent. The limit
// applies to the next start and stops no running task. It returns
// jobs.ErrInvalid for an invalid limit.
func (r *Runner) SetLimit(ctx context.Context, limit jobs.Limit) error {
	if err := taskspec.ValidateLimit(limit); err != nil {
		return err
	}
	limit.Burst = cmp.Or(limit.Burst, limit.Rate)
	err := r.store.SetLimit(ctx, limit, now())
	r.store.Notify()
	return err
}

// RemoveLimit removes the limit of a target, or returns jobs.ErrNotFound.
func (r *Runner) RemoveLimit(ctx context.Context, target jobs.Target) error {
	found, err := r.store.RemoveLimit(ctx, target, now())
	if err == nil && !found {
		err = &jobs.Error{Kind: jobs.ErrNotFound, Code: errcode.NoLimit, Subject: target.String(), What: "no limit " + target.String()}
	}
	r.store.Notify()
	return err
}

// Limits lists all limits, sorted by kind and name.
func (r *Runner) Limits(ctx context.Context) ([]LimitStatus, error) {
	return r.store.Limits(ctx, now())
}

// Dependency is a dependency between a given task and another task.
type Dependency = jobs.Dependency

// Dependencies returns the tasks that a task waits for or has waited for, and
// those that wait or have waited for it. Both lists are in the order of ids and
// have at most limit entries; 0 means all.
func (r *Runner) Dependencies(ctx context.Context, id int64, limit int) (on, by []Dependency, err error) {
	return r.store.Dependencies(ctx, id, limit)
}
