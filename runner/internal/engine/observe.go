package engine

import (
	"example.com/runner/internal/lifecycle"
	"example.com/runner/jobs"
)

// Observer receives the starts and ends of attempts. Its methods must return at once.
type Observer interface {
	// Observing reports whether the observer has a subscriber. Without one the engine does not call the other methods.
	Observing() bool
	// Started receives the task of an attempt that begins, in the state it had when the worker claimed it.
	Started(task jobs.Task)
	// Ended receives the task of an attempt whose outcome is in the database, in the state that the task has after the attempt.
	Ended(task jobs.Task)
}

func (e *Engine) observeStart(a *attempt) {
	if e.o.Observer.Observing() {
		e.o.Observer.Started(a.task)
	}
}

func (e *Engine) observeEnd(a *attempt, c lifecycle.Change) {
	if !e.o.Observer.Observing() {
		return
	}
	t := a.task
	t.State, t.Reason, t.Error, t.Result, t.Attempt, t.Losses = c.State, c.Reason, c.Error, c.Result, c.Attempt, c.Losses
	t.ErrorLine = a.outcome.ErrorLine
	t.ExitCode, t.Signal, t.Duration, t.OutputBytes, t.OutputTruncated = a.outcome.ExitCode, a.outcome.Signal, a.outcome.Duration,
		a.outcome.OutputBytes, a.outcome.OutputTruncated
	t.ChildrenKilled, t.ChildrenLeft, t.Usage = a.outcome.ChildrenKilled, a.outcome.ChildrenLeft, a.outcome.Usage
	t.GenerationID++
	if !c.RunAt.IsZero() {
		t.RunAt = c.RunAt
	}
	if c.State.Finished() {
		t.FinishedAt = a.outcome.Finished
	}
	e.o.Observer.Ended(t)
}
