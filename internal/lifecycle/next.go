package lifecycle

import (
	"encoding/json"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// Change is the effect of an outcome: the new state of the task, and the record of its attempt.
type Change struct {
	State  jobs.State
	Reason jobs.Reason
	Error  string
	Result json.RawMessage
	RunAt  time.Time // due time of a retrying or scheduled task

	Attempt int // new count of attempts
	Losses  int // new count of losses

	AttemptState jobs.State // state in the attempt's record; Snoozed if the function snoozed
	Counted      bool       // whether the attempt counts towards MaxAttempts
}

// Next returns the effect of the end of an attempt. The parameter t is the running task, o is the outcome of the attempt, and now is the
// time of its end. No other code decides the effect. Next is a pure function, without a clock, I/O or randomness. t.CancelRequestedAt is
// not zero if someone asked to cancel the task.
func Next(t jobs.Task, o Outcome, now time.Time) Change {
	asked := !t.CancelRequestedAt.IsZero()
	c := Change{Reason: o.Reason, Error: o.Error, Result: o.Result, Attempt: t.Attempt, Losses: t.Losses, Counted: true}
	cancelled := func() Change {
		if asked {
			c.Error = t.CancelText
		}
		return c.end(jobs.Cancelled, jobs.ReasonCancelled)
	}
	again := func(to jobs.State, in time.Duration) Change { // the task continues in state to, unless someone has asked to cancel it
		if asked {
			return cancelled()
		}
		c.State = to
		if to != jobs.Pending {
			c.RunAt = now.Add(in)
		}
		return c
	}
	switch {
	case o.Reason == jobs.ReasonLost: // the attempt counts as a loss only
		c.AttemptState, c.Counted = jobs.Failed, false
		c.Attempt, c.Losses = max(t.Attempt-1, 0), min(t.Losses, t.MaxLosses)+1
		if c.Losses > t.MaxLosses && !asked {
			return c.end(jobs.Failed, jobs.ReasonLost)
		}
		return again(jobs.Pending, 0)
	case o.Reason == jobs.ReasonShutdown: // the attempt counts neither as an attempt nor as a loss
		c.AttemptState, c.Counted = jobs.Failed, false
		c.Attempt = max(t.Attempt-1, 0)
		if t.MaxLosses == 0 && !asked { // a task with at most one start must not start again
			return c.end(jobs.Failed, jobs.ReasonShutdown)
		}
		return again(jobs.Pending, 0)
	case o.snooze != nil && o.Reason == "": // with a reason, such as timeout, the reason overrides the snooze
		c.AttemptState, c.Counted = jobs.Snoozed, false
		c.Attempt = max(t.Attempt-1, 0)
		return again(jobs.Scheduled, *o.snooze)
	case o.Reason == jobs.ReasonCancelled:
		c.AttemptState = jobs.Cancelled
		return cancelled()
	case o.Reason == "":
		c.AttemptState = jobs.Completed
		return c.end(jobs.Completed, "")
	}
	c.AttemptState = jobs.Failed
	switch {
	case t.Attempt >= t.MaxAttempts, o.fails && o.Reason != jobs.ReasonTimeout,
		o.Reason == jobs.ReasonExit && o.ExitCode != nil && !taskspec.HasCode(t.RetryOn, *o.ExitCode):
		return c.end(jobs.Failed, o.Reason)
	case o.retryIn != nil:
		return again(jobs.Retrying, *o.retryIn)
	default:
		return again(jobs.Retrying, Delay(t.Backoff, t.ID, t.Attempt))
	}
}

// Suspect reports whether the task is a suspect: a task that may be the reason why its workers died. A task is a suspect after its first
// loss if MaxLosses is at most 2. With a higher MaxLosses it is a suspect when it has had MaxLosses-1 losses.
//
// A worker runs no other task while it runs a suspect. So a suspect that kills its worker causes no loss of another task. A task that was
// lost only because a suspect killed its worker can then complete.
func Suspect(t jobs.Task) bool { return t.Losses >= 1 && t.Losses >= t.MaxLosses-1 }

func (c Change) end(state jobs.State, reason jobs.Reason) Change {
	c.State, c.Reason = state, reason
	return c
}
