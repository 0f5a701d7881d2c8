package input

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"example.com/runner/internal/output"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Wait waits for all tasks of a batch. It returns exit status 1 if one did not
// complete.
func Wait(ctx context.Context, r *runner.Runner, p *ui.Printer, added []jobs.Enqueued, timeout time.Duration) error {
	byID := make(map[int64]jobs.Enqueued, len(added)) // added has the same id several times if lines have the same unique key
	for _, one := range added {
		if _, twice := byID[one.ID]; !twice {
			byID[one.ID] = one
		}
	}

	w := output.Tasks{IDs: slices.Sorted(maps.Keys(byID))}
	w.Obstacles = output.NoteObstacles(ctx, r, p, w.IDs, "--wait-timeout", false)
	ctx, stop := output.Limit(ctx, timeout)
	defer stop()

	end, err := w.All(ctx, r, p, func(t jobs.Task) error {
		return ui.PrintEnd(p, t, false, EnqueuedRecord(t, byID[t.ID], p.Now()))
	})
	return cmp.Or(err, end)
}
