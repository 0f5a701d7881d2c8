package jobs

import "time"

// Place says in which state a task waits that is to start: as a new one, when it is retried, when its time has come, or when
// it no longer waits for other tasks. waits: it waits for another task. laneTaken: another task has its lane, or comes first.
func Place(runAt, now time.Time, waits, laneTaken bool) State {
	switch {
	case waits:
		return Blocked
	case runAt.After(now): // a task whose time has not come does not wait for its lane: it must not hold up others there
		return Scheduled
	case laneTaken:
		return Blocked
	}
	return Pending
}

// Keeps says whether a task that was running keeps its lane in its new state: until it has finished or was put off.
func (s State) Keeps() bool { return s == Pending || s == Running || s == Retrying }

// Frees says whether the end of a task lets one start that waits for it: any of them does if it waits for any end. If it does
// not, the one that waits is cancelled with reason dependency.
func (s State) Frees(any bool) bool { return s == Completed || any && s.Finished() }
