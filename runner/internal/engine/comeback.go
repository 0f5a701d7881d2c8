package engine

import "time"

// A snooze counts against no limit, and a task may have a million attempts. So
// a function that always returns jobs.Snooze(0) or RetryIn(0, err), or the time
// until a moment that is near, would run hundreds of times a second, with a
// record in the database for each attempt. An attempt that takes its time is no
// harm, and a task that keeps its place may depend on it.
const (
	shortDelay    = 100 * time.Millisecond
	freeComebacks = 10     // returns of one task in a row that keep their delay
	maxComebacks  = 10_000 // number of tasks whose returns a worker counts
)

// limitComebacks makes the delay of a short attempt longer if its task comes
// back at once again and again.
func (e *Engine) limitComebacks(a *attempt) {
	id := a.task.ID
	if d, comesBack := a.outcome.Delay(); !comesBack || d+a.outcome.Duration >= shortDelay {
		delete(e.comebacks, id)
		return
	}
	if e.comebacks == nil || len(e.comebacks) >= maxComebacks {
		e.comebacks = map[int64]int{}
	}

	e.comebacks[id]++
	if n := e.comebacks[id]; n <= freeComebacks {
		return
	} else if n == freeComebacks+1 {
		e.log.Warn("the task comes back without a pause", "task", id, "job", a.task.Job, "times", n, "pause", shortDelay)
	}

	a.outcome.SetDelay(shortDelay)
}
