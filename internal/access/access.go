// Package access gives the packages of this module access to unexported parts of a runner.Runner. Package runner sets its variables.
package access

import (
	"context"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

// Store returns the database of a *runner.Runner.
var Store func(r any) *db.DB

// Fenced returns how many results and heartbeats of a *runner.Runner were refused because their task belonged to a newer generation.
var Fenced func(r any) int64

// HeadSize returns how much of the start of an attempt's output is kept when the whole output has more than limit bytes.
var HeadSize func(limit int64) int64

// AddThen adds a task to the database of a *runner.Runner and calls then before the transaction commits.
var AddThen func(ctx context.Context, r any, spec jobs.Spec, then func(db.Inserted) error) error

// WorkOnly is Work of a *runner.Runner for one task.
var WorkOnly func(ctx context.Context, r any, id int64) error

// NewEngine returns a runner.Engine.
var NewEngine func(*db.Engine) any
