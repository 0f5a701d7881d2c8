package runner

import (
	"time"

	"example.com/runner/jobs"
)

// verdict is what a Work returns that has come to its end.
func (e *engine) verdict(aborted <-chan struct{}) error {
	if aborted == nil {
		return jobs.ErrShutdown
	}
	return e.failed()
}

// stopAll ends the contexts of all attempts and returns how long their ends may take.
func (e *engine) stopAll(cause error, kill bool) time.Duration {
	wait := e.longestEnd()
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.running {
		a.stop(cause, kill)
	}
	return wait
}

// longestEnd is how long the attempts that run now may take to end once they are stopped.
func (e *engine) longestEnd() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	wait := stopWait
	for _, a := range e.running {
		wait = max(wait, a.task.KillAfter+stopWait)
	}
	return wait
}

// abandonAll gives up attempts that do not end: functions that ignore their context, since commands are dead by now. Their tasks
// go back; what they still do or return is refused.
func (e *engine) abandonAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.running {
		if a.abandon() {
			e.log.Warn("attempt does not end, given up", "task", a.task.ID, "job", a.task.Job)
			e.unsettled = append(e.unsettled, a)
		}
	}
}

// awaitEnds waits a moment for attempts that were killed, so that none is left when Work returns.
func (e *engine) awaitEnds() {
	over := time.After(abortWait)
	for left := len(e.running) - len(e.unsettled); left > 0; left-- {
		select {
		case <-e.ended:
		case <-over:
			return
		}
	}
}
