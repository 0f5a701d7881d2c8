package lifecycle

import (
	"time"

	"example.com/runner/jobs"
)

// LimitReached reports whether a limit allows no start now. The parameter inUse is the number of tasks that it counts as running, and
// nextAt is the time at which its rate allows the next start; nextAt is zero if the rate allows a start now.
func LimitReached(l jobs.Limit, inUse int, nextAt time.Time) bool {
	return !nextAt.IsZero() || l.Running > 0 && inUse >= l.Running
}

// LimitTargets returns the targets whose limits can keep a due task from starting. It returns none for a task that waits for something
// else.
func LimitTargets(t *jobs.Task) []jobs.Target {
	switch {
	case t.State == jobs.Blocked && !t.Waits:
		return []jobs.Target{{Kind: jobs.LaneTarget, Name: t.Lane}}
	case t.State == jobs.Pending:
		return []jobs.Target{{Kind: jobs.AllTarget}, {Kind: jobs.QueueTarget, Name: t.Queue}, {Kind: jobs.JobTarget, Name: t.Job}}
	}
	return nil
}
