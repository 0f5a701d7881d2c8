package db

import (
	"context"
	"os"

	"example.com/runner/jobs"
)

// Package runner sets these variables for the packages beside it, the command
// line and the pages, which need more of a *runner.Runner than its methods.
var (
	// Of returns the database of a Runner.
	Of func(runner any) *DB
	// InsideOf returns what else is inside a Runner.
	InsideOf func(runner any) Inside
)

// Inside has what a Runner doesn't show: runner/admin has functions for most of
// it, with comments.
type Inside struct {
	Jobs           func() []string // names of the registered jobs, sorted
	Changes        func(ctx context.Context, check func() (done bool, err error)) error
	ApplySchedules func(ctx context.Context, list []jobs.Schedule, o ApplyOptions) ([]Applied, error)
	RunSchedule    func(ctx context.Context, name string) (jobs.Task, error)
	Abort          func()
	SetQueues      func(queues []jobs.QueueMax) error

	// WorkOne does what Work does, but for one task only, which it adds itself.
	WorkOne func(ctx context.Context, one OneTask) error
}

// OneTask is the task of a worker that runs no other.
type OneTask struct {
	Adding context.Context // context of adding the task
	Spec   jobs.Spec
	Stdin  *os.File            // stdin of the command; nil for /dev/null
	Added  func(jobs.Enqueued) // called once the task is in the database
}

type adjustKey struct{}

// With returns a context whose Open lets adjust change its Options. So the
// switches that only tests and moves need are no options of a Runner.
func With(ctx context.Context, adjust func(*Options)) context.Context {
	return context.WithValue(ctx, adjustKey{}, adjust)
}

// Alone returns a context whose Open has Options.Alone.
func Alone(ctx context.Context) context.Context {
	return With(ctx, func(o *Options) { o.Alone = true })
}
