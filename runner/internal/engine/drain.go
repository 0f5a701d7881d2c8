package engine

import (
	"context"
	"time"

	"example.com/runner/jobs"
)

// beginDrain records in the log and in the database that the worker starts nothing more. It returns a channel that receives a value at the
// end of the grace period.
func (e *Engine) beginDrain(write context.Context) <-chan time.Time {
	if err := e.failed(); err != nil {
		e.log.Error("the worker cannot continue", "err", err)
	}
	wait := max(e.o.Grace, 0)
	e.releasePrefetched(true)
	e.log.Info("draining", "running", len(e.running)-len(e.unwritten), "grace", wait)
	e.background.Go(func() {
		if err := e.worker.Drain(write); err != nil {
			e.log.Warn("cannot record that this worker drains", "err", err)
		}
	})
	return time.After(wait)
}

// result returns the error that Work returns after a drain.
func (e *Engine) result(aborted <-chan struct{}) error {
	select {
	case <-aborted: // the loop may not have seen the abort, because another event was ready at the same time
		return jobs.ErrShutdown
	default:
		return e.failed()
	}
}

// stopAll ends the contexts of all attempts. It returns the longest time that
// they may need to end. Only commands have a KillAfter.
func (e *Engine) stopAll(cause error, kill bool) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	wait := stopWait
	for _, a := range e.running {
		a.stop(cause, kill)
		if a.task.Job == jobs.CommandJob {
			wait = max(wait, a.task.KillAfter+stopWait)
		}
	}
	return wait
}

// abandonAll gives up the attempts that do not end. All of them are functions that ignore their context, because commands are dead by now.
// Their tasks go back to their queues, and the worker refuses later results of the functions.
func (e *Engine) abandonAll() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, a := range e.running {
		if a.abandon() {
			e.log.Warn("the attempt does not end: its task goes back", "task", a.task.ID, "job", a.task.Job)
			e.unwritten = append(e.unwritten, a)
		}
	}
}

// awaitEnds waits at most abortWait for the killed attempts to end, so that usually no attempt is left when Run returns.
func (e *Engine) awaitEnds() {
	e.releasePrefetched(true)
	over := time.After(abortWait)
	for left := len(e.running) - len(e.unwritten); left > 0; left-- {
		select {
		case <-e.ended:
		case <-over:
			return
		}
	}
}
