package jobs

import "time"

// InitialState returns the state in which a task waits for its start: when it is enqueued or retried, when it is due, and when its
// last dependency has finished. waits is true if it waits for another task. laneTaken is true if another task holds its lane or comes first
// in it.
func InitialState(runAt, now time.Time, waits, laneTaken bool) State {
	switch {
	case waits:
		return Blocked
	case runAt.After(now): // before its due time a task does not wait for its lane, or it would hold up other tasks of the lane
		return Scheduled
	case laneTaken:
		return Blocked
	}
	return Pending
}

// HoldsLane reports whether a task that was running still holds its lane in this state. It gives up the lane when it has finished or
// snoozed.
func (s State) HoldsLane() bool { return s == Pending || s == Running || s == Retrying }

// Releases reports whether a task that has finished in this state releases a task that depends on it. If any is true, the dependent
// task accepts every final state. If this state does not release it, the dependent task is cancelled with ReasonDependency.
func (s State) Releases(any bool) bool { return s == Completed || any && s.Finished() }
