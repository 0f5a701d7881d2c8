package ui

import (
	"context"

	"example.com/runner/internal/taskspec"
	"example.com/runner/runner"
)

// Holds lists what stops tasks from starting or finishing now: pauses, limits,
// and dead workers that have running tasks.
type Holds struct {
	Pauses runner.Pauses
	Limits taskspec.Limits
	Dead   map[string]bool // ids of dead workers with running tasks
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
	h.Limits = taskspec.LimitsOf(limits)
	return h, err
}
