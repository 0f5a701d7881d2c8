// Package access lets other packages of this module use unexported parts of a runner.Runner. Package runner sets the variables.
package access

import (
	"context"
	"os"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

// Store returns the database of a *runner.Runner.
var Store func(r any) *db.DB

// Fenced returns how many results and heartbeats of a *runner.Runner the database refused. It refuses them if another worker has claimed
// the task in the meantime.
var Fenced func(r any) int64

// User returns the name of the user who acts through a *runner.Runner.
var User func(r any) string

// Notify tells the workers and waiting calls of a *runner.Runner that tasks have changed.
var Notify func(r any)

// OnStart sets the function that a *runner.Runner calls at the start of each attempt, in the order of the starts.
var OnStart func(r any, started func(jobs.Task))

// NextTicks returns the next n times at which a schedule adds tasks, as if it were not paused. It returns fewer if the schedule has no more
// ticks, and jobs.ErrInvalid for an invalid expression or time zone.
var NextTicks func(s jobs.Schedule, n int) ([]time.Time, error)

// OneTask is the task of a worker that runs a single task, which it adds
// itself.
type OneTask struct {
	Adding context.Context // context of adding the task
	Spec   jobs.Spec
	Stdin  *os.File            // stdin of the command; nil for /dev/null
	Added  func(jobs.Enqueued) // called once the task is in the database
}

// AddAndWork does the same as the method Work of a *runner.Runner, but for one task only.
var AddAndWork func(ctx context.Context, r any, one OneTask) error

// NewEngine converts a db.Engine to a runner.Engine.
var NewEngine func(*db.Engine) any
