package taskspec

import (
	"encoding/json"
	"time"

	"example.com/runner/jobs"
)

// Change says what happens to a task after an attempt: the new state of the task, and how to record the attempt.
type Change struct {
	State  jobs.State
	Reason jobs.Reason
	Error  string
	Result json.RawMessage
	RunAt  time.Time // time of the next start; only set if State is retrying or scheduled

	Attempt int // number of attempts after the change
	Losses  int // number of losses after the change

	AttemptState jobs.State // state in the record of the attempt; Snoozed if the function returned jobs.Snooze
	Counted      bool       // whether the attempt counts against MaxAttempts
}

// The function Next decides what happens after an attempt has ended; no other code decides that. The parameter t is the running task, o is
// the outcome of the attempt, and now is the time at which it ended. If somebody has asked to cancel the task, t.CancelRequestedAt is not
// zero. Next is a pure function, without a clock, I/O or randomness.
func Next(t jobs.Task, o Outcome, now time.Time) Change {
	asked := !t.CancelRequestedAt.IsZero()
	c := Change{Reason: o.Reason, Error: o.Error, Result: o.Result, Attempt: t.Attempt, Losses: t.Losses, Counted: true}
	cancelled := func() Change {
		if asked {
			c.Error = t.CancelText
		}
		return c.end(jobs.Cancelled, jobs.ReasonCancelled)
	}
	// The function "again" returns the change after which the task can start again. If somebody has asked to cancel the task, it returns
	// the change that cancels the task.
	again := func(to jobs.State, in time.Duration) Change {
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
	case o.Reason == jobs.ReasonLost: // a lost attempt counts against MaxLosses, not against MaxAttempts
		c.AttemptState, c.Counted = jobs.Failed, false
		c.Attempt, c.Losses = max(t.Attempt-1, 0), min(t.Losses, t.MaxLosses)+1
		if c.Losses > t.MaxLosses && !asked {
			return c.end(jobs.Failed, jobs.ReasonLost)
		}
		return again(jobs.Pending, 0)
	case o.Reason == jobs.ReasonShutdown: // the attempt counts neither against MaxAttempts nor against MaxLosses
		c.AttemptState, c.Counted = jobs.Failed, false
		c.Attempt = max(t.Attempt-1, 0)
		if t.MaxLosses == 0 && !asked { // MaxLosses 0 means that the task must not start twice
			return c.end(jobs.Failed, jobs.ReasonShutdown)
		}
		return again(jobs.Pending, 0)
	case o.snooze != nil && o.Reason == "": // a reason such as timeout has precedence over the snooze
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
		o.Reason == jobs.ReasonExit && o.ExitCode != nil && !HasCode(t.RetryOn, *o.ExitCode):
		return c.end(jobs.Failed, o.Reason)
	case o.retryIn != nil:
		return again(jobs.Retrying, *o.retryIn)
	default:
		return again(jobs.Retrying, Delay(t.Backoff, t.ID, t.Attempt))
	}
}

// Suspect reports whether the task may be the reason why its workers died. If MaxLosses is at most 2, a task is a suspect after its first
// loss. If MaxLosses is higher, a task is a suspect after MaxLosses-1 losses.
//
// A worker runs a suspect alone, so a suspect that kills its worker causes no loss of another task. Tasks that were lost only because they
// ran beside the suspect can then complete.
func Suspect(t jobs.Task) bool { return t.Losses >= 1 && t.Losses >= t.MaxLosses-1 }

func (c Change) end(state jobs.State, reason jobs.Reason) Change {
	c.State, c.Reason = state, reason
	return c
}
