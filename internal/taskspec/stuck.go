package taskspec

import (
	"time"

	"example.com/runner/jobs"
)

// stuckAfter is how long an attempt may go on after its context has ended. If it
// goes on for longer, it is stuck.
const stuckAfter = 10 * time.Second

// Stuck reports whether a running task should have ended more than stuckAfter ago, because of its timeout or of a request to cancel it. The
// result "since" is the time at which the context of the attempt ended. For a command it is the time at which the worker sends SIGKILL.
func Stuck(t *jobs.Task, now time.Time) (since time.Time, stuck bool) {
	if t.State != jobs.Running || t.StartedAt.IsZero() {
		return time.Time{}, false
	}
	since = t.CancelRequestedAt
	if t.Timeout > 0 {
		if end := t.StartedAt.Add(t.Timeout); since.IsZero() || end.Before(since) {
			since = end
		}
	}
	if since.IsZero() {
		return since, false
	}
	if t.Job == jobs.CommandJob {
		since = since.Add(t.KillAfter)
	}
	return since, now.Sub(since) >= stuckAfter
}
