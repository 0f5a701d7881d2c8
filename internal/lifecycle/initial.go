package lifecycle

import (
	"time"

	"example.com/runner/jobs"
)

// InitialState returns the state in which a task waits for its start. Call it when the task is enqueued or retried, when it becomes due,
// and when its last dependency has finished. The parameter waits is true if the task waits for another task. The parameter laneTaken is
// true if another task holds its lane or comes before it in the lane.
func InitialState(runAt, now time.Time, waits, laneTaken bool) jobs.State {
	switch {
	case waits:
		return jobs.Blocked
	case runAt.After(now): // before its due time a task does not wait in its lane, where it would delay other tasks
		return jobs.Scheduled
	case laneTaken:
		return jobs.Blocked
	}
	return jobs.Pending
}

// HoldsLane reports whether a task that was running still holds its lane in state s. It gives up the lane when it has finished or
// snoozed.
func HoldsLane(s jobs.State) bool {
	return s == jobs.Pending || s == jobs.Running || s == jobs.Retrying
}

// Releases reports whether a task that has finished in state s releases a task that depends on it. If the parameter any is true, the
// dependent task accepts every final state. If Releases returns false, the dependent task is cancelled with jobs.ReasonDependency.
func Releases(s jobs.State, any bool) bool { return s == jobs.Completed || any && s.Finished() }
