// Package access gives the packages of this module access to unexported parts of a runner.Runner. Package runner sets its variables.
package access

import "example.com/runner/db"

// Store returns the database of a *runner.Runner.
var Store func(r any) *db.DB

// Fenced returns how many results and heartbeats of a *runner.Runner were refused because their task belonged to a newer generation.
var Fenced func(r any) int64

// HeadSize returns how much of the start of an attempt's output is kept when the whole output has more than limit bytes.
var HeadSize func(limit int64) int64

// NewEngine returns a runner.Engine.
var NewEngine func(*db.Engine) any
