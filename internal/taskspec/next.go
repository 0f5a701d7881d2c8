package taskspec

import (
	"encoding/json"
	"math"
	"time"

	"example.com/runner/jobs"
)

// Change says what happens to a task after an attempt, and how to record the
// attempt.
type Change struct {
	State  jobs.State
	Reason jobs.Reason
	Error  string
	Result json.RawMessage
	RunAt  time.Time // next start; only set if State is retrying or scheduled

	Attempt int // number of attempts after the change
	Losses  int // number of losses after the change

	AttemptState jobs.State // of the attempt; Snoozed if the function returned jobs.Snooze
	Counted      bool       // whether the attempt counts against MaxAttempts
}

// Next decides what happens to the running task t after an attempt that ended
// at now with outcome o; no other code decides that. A cancel that somebody has
// asked for is in t.CancelRequestedAt.
func Next(t jobs.Task, o Outcome, now time.Time) Change {
	asked := !t.CancelRequestedAt.IsZero()
	c := Change{Reason: o.Reason, Error: o.Error, Result: o.Result, Attempt: t.Attempt, Losses: t.Losses, Counted: true}
	cancelled := func() Change {
		if asked {
			c.Error = t.CancelText
		}
		return c.end(jobs.Cancelled, jobs.ReasonCancelled)
	}
	restart := func(to jobs.State, in time.Duration) Change {
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
		return restart(jobs.Pending, 0)
	case o.Reason == jobs.ReasonShutdown: // the attempt counts neither against MaxAttempts nor against MaxLosses
		c.AttemptState, c.Counted = jobs.Failed, false
		c.Attempt = max(t.Attempt-1, 0)
		if t.MaxLosses == 0 && !asked { // MaxLosses 0 means that the task must not start twice
			return c.end(jobs.Failed, jobs.ReasonShutdown)
		}
		return restart(jobs.Pending, 0)
	case o.snooze != nil && o.Reason == "": // a reason such as timeout has precedence over the snooze
		c.AttemptState, c.Counted = Snoozed, false
		c.Attempt = max(t.Attempt-1, 0)
		return restart(jobs.Scheduled, *o.snooze)
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
		return restart(jobs.Retrying, *o.retryIn)
	default:
		return restart(jobs.Retrying, Delay(t.Backoff, t.ID, t.Attempt))
	}
}

func (c Change) end(state jobs.State, reason jobs.Reason) Change {
	c.State, c.Reason = state, reason
	return c
}

// Suspect reports whether the task may be the one that killed its workers:
// after its first loss if MaxLosses is at most 2, otherwise after MaxLosses-1
// losses. A worker runs a suspect alone, so that it can't take other tasks with
// it, and tasks that were lost only beside it complete.
func Suspect(t jobs.Task) bool { return t.Losses >= 1 && t.Losses >= t.MaxLosses-1 }

// Delay returns how long a task waits after attempt n, counted from 1: at most
// Max, plus or minus up to 10 % of jitter. The jitter is a hash of id and n, so
// the retries of many tasks spread out.
func Delay(b jobs.Backoff, id int64, n int) time.Duration {
	n = max(n, 1)
	d := float64(b.Delay)
	switch b.Strategy {
	case jobs.BackoffFixed:
	case jobs.BackoffLinear:
		d *= float64(n)
	default:
		d = math.Ldexp(d, min(n-1, 1000))
	}

	d = max(min(d, float64(b.Max), math.MaxInt64/2), 0) // a user may have written any number with SQL
	return time.Duration(d * (0.9 + 0.2*chance(uint64(id), uint64(n))))
}

// chance maps two numbers to one in [0, 1) that looks random, with the last
// step of splitmix64 (Steele, Lea, Flood, 2014).
func chance(a, b uint64) float64 {
	z := a*0x9e3779b97f4a7c15 + b*0xd1342543de82ef95
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return float64((z^z>>31)>>11) / (1 << 53)
}
