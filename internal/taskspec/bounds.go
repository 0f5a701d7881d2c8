package taskspec

import (
	"time"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// These are the limits of a task's fields. The database schema checks them,
// too.
const (
	MaxText         = 200       // bytes of a short text, such as a lane, label or name of a step
	MaxArgs         = 1 << 20   // bytes of the arguments as JSON
	MaxInput        = 16 << 20  // bytes of standard input
	MaxEnv          = 128 << 10 // bytes of the environment as JSON
	MaxMetadata     = 4 << 10   // bytes of the metadata as JSON
	MaxMetadataKeys = 32
	MaxError        = 8 << 10 // bytes of an error
	MaxPath         = 4 << 10 // bytes of a path
	MaxName         = 100     // characters of the name of a queue, schedule or job
	MaxCodes        = 1000    // bytes of a list of exit codes
	MaxAfter        = 50_000  // number of tasks that a task waits for
	MaxSteps        = 10_000  // number of steps and sleeps of a task
	MaxDelay        = 10 * 365 * 24 * time.Hour
)

// defaultSpec contains the defaults of all options.
var defaultSpec = jobs.NewSpec("")

// These are the defaults of retention. A worker can have other times.
const (
	DefaultKeep       = 7 * 24 * time.Hour  // time after which a worker deletes completed and cancelled tasks
	DefaultKeepFailed = 30 * 24 * time.Hour // time after which a worker deletes failed tasks
)

// These are defaults of a task's fields. Package jobs defines them.
var (
	DefaultPriority    = defaultSpec.Priority
	DefaultOutputLimit = defaultSpec.OutputLimit
	CommandAttempts    = jobs.Command(command.Command{}).MaxAttempts
	FuncAttempts       = jobs.Define[struct{}]("").With(struct{}{}).MaxAttempts
)

// HeadSize returns how many bytes a worker keeps from the start of an output
// that exceeds its limit. It also keeps the end, and drops the middle.
func HeadSize(limit int64) int64 { return min(64<<10, limit/2) }
