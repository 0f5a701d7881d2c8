// Package access gives the packages of this module access to unexported parts of a runner.Runner. Package runner sets the variables of
// this package.
package access

import (
	"context"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

// Store returns the database of a *runner.Runner.
var Store func(r any) *db.DB

// Fenced returns the number of results and heartbeats of a *runner.Runner that the database refused, because a newer generation of the
// task existed.
var Fenced func(r any) int64

// User returns the name of the user who acts through a *runner.Runner.
var User func(r any) string

// Notify tells the workers and waiting calls of a *runner.Runner that tasks have changed.
var Notify func(r any)

// HeadSize returns the number of bytes at the start of an attempt's output that a worker stores when the output has more than limit bytes.
var HeadSize func(limit int64) int64

// NextTicks returns the next n ticks of a schedule, as if it were not paused, or fewer if it has no more. It returns jobs.ErrInvalid for an
// invalid expression or time zone.
var NextTicks func(s jobs.Schedule, n int) ([]time.Time, error)

// AddThen adds a task to the database of a *runner.Runner. It calls the function then before the transaction commits.
var AddThen func(ctx context.Context, r any, spec jobs.Spec, then func(db.Inserted) error) error

// WorkOnly does the same as the method Work of a *runner.Runner, but for one task only.
var WorkOnly func(ctx context.Context, r any, id int64) error

// NewEngine converts a db.Engine to a runner.Engine.
var NewEngine func(*db.Engine) any
