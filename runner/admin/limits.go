package admin

import (
	"cmp"
	"context"

	"example.com/runner/db"
	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

type (
	// Limit says how many tasks of its Target may run at once (Running), and
	// how often they may start: Rate starts in each period of Per, at most
	// Burst at once.
	Limit = db.Limit
	// Target is the queue, job or lane that a Limit applies to, or with
	// AllTarget the whole database. Its Name is empty for AllTarget.
	Target = db.Target
	// TargetKind says what the Name of a Target names.
	TargetKind = db.TargetKind
	// LimitStatus is a Limit and its present use: how many tasks run (InUse),
	// and when the next one may start (NextAt; zero for now).
	LimitStatus = db.LimitStatus
)

// The kinds of targets.
const (
	QueueTarget = db.QueueTarget
	JobTarget   = db.JobTarget
	LaneTarget  = db.LaneTarget
	AllTarget   = db.AllTarget
)

// SetLimit limits how many tasks of a queue, job or lane, or of the whole
// database, run at once, and how often they start. A lane without a limit runs
// one task at a time. The limit holds for all workers together. SetLimit
// replaces the whole limit of its target, and it is idempotent. The limit
// applies to the next start and stops no running task. It returns
// jobs.ErrInvalid for an invalid limit.
func SetLimit(ctx context.Context, r *runner.Runner, limit Limit) error {
	if err := db.ValidateLimit(limit); err != nil {
		return err
	}
	limit.Burst = cmp.Or(limit.Burst, limit.Rate)
	err := db.Of(r).SetLimit(ctx, limit, now())
	db.Of(r).Notify()
	return err
}

// RemoveLimit removes the limit of a target, or returns jobs.ErrNotFound.
func RemoveLimit(ctx context.Context, r *runner.Runner, target Target) error {
	found, err := db.Of(r).RemoveLimit(ctx, target, now())
	if err == nil && !found {
		err = &jobs.Error{Kind: jobs.ErrNotFound, Code: errcode.NoLimit, Subject: target.String(), What: "no limit " + target.String()}
	}
	db.Of(r).Notify()
	return err
}

// Limits lists all limits, sorted by kind and name.
func Limits(ctx context.Context, r *runner.Runner) ([]LimitStatus, error) {
	return db.Of(r).Limits(ctx, now())
}
