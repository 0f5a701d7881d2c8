package ui

import (
	"context"

	"example.com/runner/db"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// Holds lists what stops tasks from starting or finishing now: pauses, limits,
// and dead workers that have running tasks.
type Holds struct {
	Pauses admin.PauseMap
	Limits db.Limits
	Dead   map[string]bool // ids of dead workers with running tasks
}

// ReadHolds reads the pauses, limits and dead workers from the database.
func ReadHolds(ctx context.Context, r *runner.Runner) (h Holds, err error) {
	if h.Pauses, err = admin.Pauses(ctx, r); err != nil {
		return h, err
	}

	workers, err := admin.Workers(ctx, r)
	if err != nil {
		return h, err
	}

	h.Dead = map[string]bool{}
	for _, w := range workers {
		if w.Dead && len(w.Running) > 0 {
			h.Dead[w.ID] = true
		}
	}

	limits, err := admin.Limits(ctx, r)
	h.Limits = db.LimitsOf(limits)
	return h, err
}
