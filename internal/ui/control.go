package ui

import (
	"context"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// PutFirst puts waiting tasks before all pending tasks of their queue. The
// first id gets the highest priority.
func PutFirst(ctx context.Context, r *runner.Runner, ids []int64) ([]jobs.ActionResult, error) {
	done, err := db.Of(r).PutFirst(ctx, ids, db.CurrentUser(), time.Now())
	db.Of(r).Notify()
	return done, err
}
