package taskspec

import (
	"time"

	"example.com/runner/jobs"
)

// InitialState returns the state in which a task waits for its start. Call it when a task is enqueued or retried, when it becomes due, and
// when its last dependency has finished. The parameter "waits" is true if the task waits for another task. The parameter laneTaken is true
// if another task holds the lane of this task or comes before it in the lane.
func InitialState(runAt, now time.Time, waits, laneTaken bool) jobs.State {
	switch {
	case waits:
		return jobs.Blocked
	case runAt.After(now): // a task that is not due yet must not delay other tasks in its lane
		return jobs.Scheduled
	case laneTaken:
		return jobs.Blocked
	}
	return jobs.Pending
}

// HoldsLane reports whether a task still holds its lane when it changes from running to state s. It releases the lane when it has finished
// or snoozed.
func HoldsLane(s jobs.State) bool {
	return s == jobs.Pending || s == jobs.Running || s == jobs.Retrying
}

// Releases reports whether a task that has finished in state s allows a dependent task to start. If the parameter "any" is true, the
// dependent task accepts every final state. If Releases returns false, the dependent task must be cancelled with jobs.ReasonDependency.
func Releases(s jobs.State, any bool) bool { return s == jobs.Completed || any && s.Finished() }
