package taskspec

import (
	"slices"

	"example.com/runner/jobs"
)

// Snoozed is the state of an attempt whose function returned Snooze. No task is
// ever in this state.
const Snoozed jobs.State = "snoozed"

var states = []jobs.State{jobs.Scheduled, jobs.Pending, jobs.Blocked, jobs.Running, jobs.Retrying,
	jobs.Completed, jobs.Failed, jobs.Cancelled}

// AllStates returns all states: the unfinished ones first, in the order of a
// task's life.
func AllStates() []jobs.State { return slices.Clone(states) }

// Unfinished returns the states in which a task will start or is running.
func Unfinished() []jobs.State { return slices.Clone(states[:5]) }

// Finished returns the states in which a task has ended.
func Finished() []jobs.State { return slices.Clone(states[5:]) }
