package input

import (
	"context"
	"slices"
	"strconv"
	"time"

	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// PrintEnqueued prints the ids, or with --json the records of the added tasks,
// in order.
func PrintEnqueued(ctx context.Context, r *runner.Runner, p *ui.Printer, added []jobs.Enqueued, ids ...int64) error {
	if !p.JSON {
		for _, id := range ids {
			p.Print(strconv.FormatInt(id, 10) + "\n")
		}
		return p.Flush()
	}

	for part := range slices.Chunk(added, 500) {
		ids := make([]int64, len(part))
		for i, one := range part {
			ids[i] = one.ID
		}

		tasks, err := r.List(ctx, jobs.Filter{IDs: ids})
		if err != nil {
			return err
		}

		for _, one := range part {
			i := slices.IndexFunc(tasks, func(t jobs.Task) bool { return t.ID == one.ID })
			switch {
			case i >= 0:
				err = p.Record(EnqueuedRecord(tasks[i], one, p.Now()))
			case one.Kept: // an older task, which was deleted, has the unique key
				err = p.Record(ui.NewRecord("id", one.ID, "enqueued", ui.WasKept))
			}

			if err != nil {
				return err
			}
		}
	}

	return nil
}

// EnqueuedRecord returns the JSON record of a task. The record says whether the
// task is new, or what EnqueueSeq did because of its unique key.
func EnqueuedRecord(t jobs.Task, one jobs.Enqueued, now time.Time) ui.Record {
	became := ui.WasCreated
	switch {
	case one.Kept:
		became = ui.WasKept
	case one.Replaced:
		became = ui.WasReplaced
	}

	return ui.NewTask(t, now).With("enqueued", became)
}
