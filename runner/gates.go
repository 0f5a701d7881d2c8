package runner

import (
	"context"

	"example.com/runner/jobs"
)

// Gates are what keeps tasks from starting that might: pauses, and the limits that let nothing start now.
type Gates struct {
	Pauses Pauses
	Limits map[jobs.Target]LimitStat // all of them
	Closed map[jobs.Target]LimitStat // those that let nothing start now
}

// Gates returns what keeps tasks from starting.
func (r *Runner) Gates(ctx context.Context) (g Gates, err error) {
	if g.Pauses, err = r.Pauses(ctx); err != nil {
		return g, err
	}
	limits, err := r.Limits(ctx)
	g.Limits, g.Closed = map[jobs.Target]LimitStat{}, map[jobs.Target]LimitStat{}
	for _, l := range limits {
		g.Limits[l.Target] = l
		if !l.NextAt.IsZero() || l.Running > 0 && l.InUse >= l.Running {
			g.Closed[l.Target] = l
		}
	}
	return g, err
}

// limit returns the closed limit that a task waits for; nil: it waits for none.
func (g Gates) limit(t jobs.Task) *LimitStat {
	targets := []jobs.Target{{Kind: jobs.QueueTarget, Name: t.Queue}, {Kind: jobs.JobTarget, Name: t.Job}}
	switch {
	case t.State == jobs.Blocked && !t.Waits:
		targets = []jobs.Target{{Kind: jobs.LaneTarget, Name: t.Lane}}
	case t.State != jobs.Pending:
		return nil
	}
	for _, target := range targets {
		if l, closed := g.Closed[target]; closed {
			return &l
		}
	}
	return nil
}

// note says in a word what holds a pending task; empty: nothing does.
func (g Gates) note(t jobs.Task) string {
	if t.State != jobs.Pending {
		return ""
	}
	if _, paused := g.Pauses.Of(t.Queue); paused {
		return "paused"
	}
	if g.limit(t) != nil {
		return "limit"
	}
	return ""
}
