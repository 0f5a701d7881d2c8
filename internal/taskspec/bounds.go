package taskspec

import "time"

// These are limits for the fields of a task. The database schema checks them, too.
const (
	MaxText         = 200       // bytes of a short text: lane, unique key, label, user name, name of a step, text of a progress report
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

// These are limits for the fields of a schedule.
const (
	maxCron  = 1000 // bytes of a cron expression
	MinEvery = time.Second
)
