package engine

import (
	"context"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

// phase is how far a worker has come on the way to its end.
type phase int

const (
	working   phase = iota
	draining        // starts nothing more; attempts may end by themselves until the grace period is over
	stopping        // has ended the contexts of all attempts
	killing         // has killed the commands, too, because Abort was called
	abandoned       // has given up the attempts that didn't end
)

// ending reports whether the worker starts nothing more.
func (e *Engine) ending() bool { return e.phase > working }

// advance begins the next phase if it's time.
func (e *Engine) advance(ctx, write, aborted context.Context) {
	over := !e.phaseEnd.IsZero() && !now().Before(e.phaseEnd)
	switch {
	case e.phase < killing && aborted.Err() != nil:
		e.enter(killing, min(e.stopAll(jobs.ErrShutdown, true), abortWait))
	case e.phase == working && (ctx.Err() != nil || e.failed() != nil):
		e.enter(draining, max(e.o.Grace, 0))
		e.beginDrain(write)
	case e.phase == draining && over:
		e.enter(stopping, e.stopAll(jobs.ErrShutdown, false))
	case over:
		e.phase, e.phaseEnd = abandoned, time.Time{}
		e.abandonAll()
	}
}

// enter begins a phase that ends after d.
func (e *Engine) enter(p phase, d time.Duration) { e.phase, e.phaseEnd = p, now().Add(d) }

// beginDrain records in the log and in the database that the worker starts
// nothing more.
func (e *Engine) beginDrain(write context.Context) {
	if err := e.failed(); err != nil {
		e.log.Error("the worker cannot continue", "err", err)
	}

	e.releasePrefetched()
	e.log.Info("draining", "running", len(e.running)-len(e.unwritten), "grace", max(e.o.Grace, 0))
	e.background.Go(func() {
		if err := e.worker.Drain(write); err != nil {
			e.log.Warn("cannot record that this worker drains", "err", err)
		}
	})
}

// stopAll ends the contexts of all attempts. It returns the longest time that
// they may need to end. Only commands have a KillAfter.
func (e *Engine) stopAll(cause error, kill bool) time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()

	wait := stopWait
	for _, a := range e.running {
		a.stop(cause, kill)
		if a.task.Job == command.Job {
			wait = max(wait, a.task.KillAfter+stopWait)
		}
	}

	return wait
}

// abandonAll gives up the attempts that don't end. All of them are functions
// that ignore their context, because commands are dead by now. Their tasks go
// back to their queues, and the worker refuses later results of the functions.
func (e *Engine) abandonAll() {
	for _, a := range e.abandon() {
		e.log.Warn("the attempt does not end: its task goes back", "task", a.task.ID, "job", a.task.Job)
		e.receive(a)
	}
}

func (e *Engine) abandon() (given []*attempt) {
	e.mu.Lock()
	defer e.mu.Unlock()

	for _, a := range e.running {
		if a.abandon() {
			given = append(given, a)
		}
	}

	return given
}

// awaitEnds waits at most abortWait for the killed attempts to end, so that
// usually no attempt is left when Run returns.
func (e *Engine) awaitEnds() {
	e.phase = abandoned
	e.releasePrefetched()

	timeout := time.After(abortWait)
	for left := len(e.running) - len(e.unwritten); left > 0; left-- {
		select {
		case <-e.ended:
		case <-timeout:
			return
		}
	}
}
