package lifecycle

import (
	"time"

	"example.com/runner/jobs"
)

// LimitReached reports whether a limit permits no further start now. The parameter inUse is how many running tasks the limit counts. The
// parameter nextAt is the time at which the rate of the limit permits the next start, or zero if it permits one now.
func LimitReached(l jobs.Limit, inUse int, nextAt time.Time) bool {
	return !nextAt.IsZero() || l.Running > 0 && inUse >= l.Running
}

// LimitTargets returns the targets (lane, queue, job or all tasks) whose limits can stop a due task from starting. It returns none for a
// task that does not wait for a limit, for example because it waits for other tasks.
func LimitTargets(t *jobs.Task) []jobs.Target {
	switch {
	case t.State == jobs.Blocked && !t.Waits:
		return []jobs.Target{{Kind: jobs.LaneTarget, Name: t.Lane}}
	case t.State == jobs.Pending:
		return []jobs.Target{{Kind: jobs.AllTarget}, {Kind: jobs.QueueTarget, Name: t.Queue}, {Kind: jobs.JobTarget, Name: t.Job}}
	}
	return nil
}
