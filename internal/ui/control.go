package ui

import (
	"context"
	"time"

	"example.com/runner/db"
	"example.com/runner/runner"
)

// PauseTasks keeps waiting tasks from starting until ResumeTasks. Tasks that
// run or have finished stay as they are.
func PauseTasks(
	ctx context.Context, r *runner.Runner, ids []int64, reason string,
) ([]runner.ActionResult, error) {
	return apply(ctx, r, ids, db.PauseTask(db.CurrentUser(), reason, time.Now()))
}

// ResumeTasks ends the pause of tasks. A resumed task starts under the same
// conditions as a new task.
func ResumeTasks(ctx context.Context, r *runner.Runner, ids []int64) ([]runner.ActionResult, error) {
	return apply(ctx, r, ids, db.ResumeTask(db.CurrentUser(), time.Now()))
}

func apply(ctx context.Context, r *runner.Runner, ids []int64, act db.Action) ([]runner.ActionResult, error) {
	done, err := db.Of(r).Apply(ctx, ids, act)
	db.Of(r).Notify()
	return done, err
}

// PutFirst puts waiting tasks before all pending tasks of their queue. The
// first id gets the highest priority.
func PutFirst(ctx context.Context, r *runner.Runner, ids []int64) ([]runner.ActionResult, error) {
	done, err := db.Of(r).PutFirst(ctx, ids, db.CurrentUser(), time.Now())
	db.Of(r).Notify()
	return done, err
}
