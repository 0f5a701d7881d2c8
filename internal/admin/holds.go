package admin

import (
	"context"

	"example.com/runner/internal/lifecycle"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Holds lists what stops tasks from starting or finishing now: pauses, limits that allow no further start, and dead workers that have
// running tasks.
type Holds struct {
	Pauses runner.Pauses
	Limits map[jobs.Target]runner.LimitStatus // all limits
	Closed map[jobs.Target]runner.LimitStatus // limits that allow no further start now
	Dead   map[string]bool                    // ids of dead workers with running tasks
}

// ReadHolds reads the pauses, limits and dead workers from the database.
func ReadHolds(ctx context.Context, r *runner.Runner) (h Holds, err error) {
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
	h.Limits, h.Closed = map[jobs.Target]runner.LimitStatus{}, map[jobs.Target]runner.LimitStatus{}
	for _, l := range limits {
		h.Limits[l.Target] = l
		if lifecycle.LimitReached(l.Limit, l.InUse, l.NextAt) {
			h.Closed[l.Target] = l
		}
	}
	return h, err
}

// Limited reports whether one of the limits in the field Closed stops a task from starting.
func (h Holds) Limited(t jobs.Task) bool {
	for _, target := range lifecycle.LimitTargets(&t) {
		if _, closed := h.Closed[target]; closed {
			return true
		}
	}
	return false
}
