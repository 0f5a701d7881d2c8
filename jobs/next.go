package jobs

import (
	"encoding/json"
	"time"
)

// Change is what follows from an outcome: the new state of the task and the record of its attempt.
type Change struct {
	State  State
	Reason Reason
	Error  string
	Result json.RawMessage
	RunAt  time.Time // retrying and scheduled: when it is due

	Attempt int // the attempts that count, from now on
	Losses  int // the losses, from now on

	AttemptState State // of the attempt's record; Snoozed for one that was put off
	Counted      bool  // whether the attempt counts as one
}

// Snoozed is the state of an attempt that put itself off. No task is ever in it.
const Snoozed State = "snoozed"

// Next decides what follows when an attempt of t ends with o at now. It is the only place where that is decided, and it is
// pure: no clock, no I/O, no chance. t is the running task; t.CancelRequestedAt says whether someone wants it cancelled.
func Next(t Task, o Outcome, now time.Time) Change {
	asked := !t.CancelRequestedAt.IsZero()
	c := Change{Reason: o.Reason, Error: o.Error, Result: o.Result, Attempt: t.Attempt, Losses: t.Losses, Counted: true}
	cancelled := func() Change {
		if asked {
			c.Error = t.CancelText
		}
		return c.end(Cancelled, ReasonCancelled)
	}
	again := func(to State, in time.Duration) Change { // it goes on, unless someone wants it cancelled
		if asked {
			return cancelled()
		}
		c.State = to
		if to != Pending {
			c.RunAt = now.Add(in)
		}
		return c
	}
	switch {
	case o.Reason == ReasonLost: // counted in losses, not in attempts
		c.AttemptState, c.Counted = Failed, false
		c.Attempt, c.Losses = max(t.Attempt-1, 0), min(t.Losses, t.MaxLosses)+1
		if c.Losses > t.MaxLosses && !asked {
			return c.end(Failed, ReasonLost)
		}
		return again(Pending, 0)
	case o.Reason == ReasonShutdown: // given back, counted nowhere
		c.AttemptState, c.Counted = Failed, false
		c.Attempt = max(t.Attempt-1, 0)
		if t.MaxLosses == 0 && !asked { // at most once: it has started, so it never starts again
			return c.end(Failed, ReasonShutdown)
		}
		return again(Pending, 0)
	case o.snooze != nil && o.Reason == "": // a stop in between wins: its reason stands
		c.AttemptState, c.Counted = Snoozed, false
		c.Attempt = max(t.Attempt-1, 0)
		return again(Scheduled, *o.snooze)
	case o.Reason == ReasonCancelled:
		c.AttemptState = Cancelled
		return cancelled()
	case o.Reason == "":
		c.AttemptState = Completed
		return c.end(Completed, "")
	}
	c.AttemptState = Failed
	switch {
	case t.Attempt >= t.MaxAttempts, o.Reason == ReasonExit && o.ExitCode != nil && !t.RetryOn.Contains(*o.ExitCode):
		return c.end(Failed, o.Reason)
	case o.retryIn != nil:
		return again(Retrying, *o.retryIn)
	default:
		return again(Retrying, t.Backoff.After(t.ID, t.Attempt))
	}
}

// Suspect says whether a task may have killed its workers, and can be lost once more at most before it has failed. It runs alone in
// its worker: so no neighbour fails by it, and it is told from neighbours that were only lost with it.
func (t Task) Suspect() bool { return t.Losses >= 1 && t.Losses >= t.MaxLosses-1 }

func (c Change) end(state State, reason Reason) Change {
	c.State, c.Reason = state, reason
	return c
}
