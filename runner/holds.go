package runner

import (
	"context"

	"example.com/runner/jobs"
)

// Holds are the reasons why due tasks do not start and running tasks do not continue: pauses, limits that allow no start now, and dead
// workers.
type Holds struct {
	Pauses Pauses
	Limits map[jobs.Target]LimitStatus // all limits
	Closed map[jobs.Target]LimitStatus // limits that allow no start now
	Dead   map[string]bool             // ids of dead workers with running tasks
}

// Holds returns the pauses, limits and dead workers that keep tasks from starting or continuing now.
func (r *Runner) Holds(ctx context.Context) (h Holds, err error) {
	if h.Pauses, err = r.Pauses(ctx); err != nil {
		return h, err
	}
	workers, err := r.Workers(ctx)
	if err != nil {
		return h, err
	}
	h.Dead = map[string]bool{}
	for _, w := range workers {
		if w.Dead && len(w.Running) > 0 {
			h.Dead[w.ID] = true
		}
	}
	limits, err := r.Limits(ctx)
	h.Limits, h.Closed = map[jobs.Target]LimitStatus{}, map[jobs.Target]LimitStatus{}
	for _, l := range limits {
		h.Limits[l.Target] = l
		if !l.NextAt.IsZero() || l.Running > 0 && l.InUse >= l.Running {
			h.Closed[l.Target] = l
		}
	}
	return h, err
}

// Limit returns the limit in Closed that a task waits for, or nil if it waits for none.
func (h Holds) Limit(t jobs.Task) *LimitStatus {
	targets := []jobs.Target{{Kind: jobs.AllTarget}, {Kind: jobs.QueueTarget, Name: t.Queue}, {Kind: jobs.JobTarget, Name: t.Job}}
	switch {
	case t.State == jobs.Blocked && !t.Waits:
		targets = []jobs.Target{{Kind: jobs.LaneTarget, Name: t.Lane}}
	case t.State != jobs.Pending:
		return nil
	}
	for _, target := range targets {
		if l, closed := h.Closed[target]; closed {
			return &l
		}
	}
	return nil
}
