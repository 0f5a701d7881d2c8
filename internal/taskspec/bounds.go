package taskspec

import "time"

// Limits of a task's fields, beside those of package taskjson. The schema checks the same limits.
const (
	MaxText         = 200       // bytes of a lane, unique key, label, user name, step name or progress text
	MaxArgs         = 1 << 20   // bytes of JSON
	MaxInput        = 16 << 20  // bytes of standard input
	MaxEnv          = 128 << 10 // bytes of the environment as JSON
	MaxMetadata     = 4 << 10   // bytes of the metadata as JSON
	MaxMetadataKeys = 32
	MaxError        = 8 << 10 // bytes of an error
	MaxPath         = 4 << 10 // bytes of a path
	MaxName         = 100     // characters of a queue, schedule or job
	MaxCodes        = 1000    // bytes of a list of exit codes
	MaxAfter        = 50_000  // number of tasks that a task waits for
	MaxSteps        = 10_000  // number of steps and sleeps of a task
	MaxDelay        = 10 * 365 * 24 * time.Hour
)

// Limits of a schedule's fields.
const (
	maxCron  = 1000 // bytes of an expression
	MinEvery = time.Second
)
