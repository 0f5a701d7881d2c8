package main

import (
	"context"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// gates are what keeps tasks from starting that might: pauses, and the limits that let nothing start now.
type gates struct {
	pauses runner.Pauses
	limits map[jobs.Target]runner.LimitStat // all of them
	closed map[jobs.Target]runner.LimitStat
}

func readGates(ctx context.Context, r *runner.Runner) (g gates, err error) {
	if g.pauses, err = r.Pauses(ctx); err != nil {
		return g, err
	}
	limits, err := r.Limits(ctx)
	g.limits, g.closed = map[jobs.Target]runner.LimitStat{}, map[jobs.Target]runner.LimitStat{}
	for _, l := range limits {
		g.limits[l.Target] = l
		if !l.NextAt.IsZero() || l.Running > 0 && l.InUse >= l.Running {
			g.closed[l.Target] = l
		}
	}
	return g, err
}

// limit returns the closed limit that a task waits for; nil: it waits for none.
func (g gates) limit(t jobs.Task) *runner.LimitStat {
	targets := []jobs.Target{{Kind: jobs.QueueTarget, Name: t.Queue}, {Kind: jobs.JobTarget, Name: t.Job}}
	switch {
	case t.State == jobs.Blocked && !t.Waits:
		targets = []jobs.Target{{Kind: jobs.LaneTarget, Name: t.Lane}}
	case t.State != jobs.Pending:
		return nil
	}
	for _, target := range targets {
		if l, closed := g.closed[target]; closed {
			return &l
		}
	}
	return nil
}

// note says in a word what holds a pending task; empty: nothing does.
func (g gates) note(t jobs.Task) string {
	if t.State != jobs.Pending {
		return ""
	}
	if _, paused := g.pauses.Of(t.Queue); paused {
		return "paused"
	}
	if g.limit(t) != nil {
		return "limit"
	}
	return ""
}
