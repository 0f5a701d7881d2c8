package output

import (
	"context"
	"slices"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Tasks are the tasks that a command waits for.
type Tasks struct {
	IDs     []int64 // tasks that exist when the wait begins
	Missing []int64 // ids on the command line for which no task exists

	Obstacles *Obstacles // says why the tasks don't run
}

// Select returns the tasks to wait for: those with the filter's ids, or the
// unfinished tasks that match it. Failed and cancelled tasks of a batch count
// too, because they affect the exit status.
func Select(ctx context.Context, r *runner.Runner, f jobs.Filter) (w Tasks, err error) {
	if len(f.IDs) == 0 {
		states := taskspec.Unfinished()
		switch {
		case f.Batch != 0 && len(f.States) == 0:
			states = append(states, jobs.Failed, jobs.Cancelled)
		case len(f.States) > 0:
			states = slices.DeleteFunc(states, func(s jobs.State) bool { return !slices.Contains(f.States, s) })
		}

		if f.States = states; len(states) == 0 {
			return w, nil
		}

		f.OldestFirst = true
		w.IDs, err = db.Of(r).IDs(ctx, f)
		return w, err
	}

	existing, err := db.Of(r).IDs(ctx, f)
	for _, id := range f.IDs {
		if slices.Contains(existing, id) {
			w.IDs = append(w.IDs, id)
		} else {
			w.Missing = append(w.Missing, id)
		}
	}

	return w, err
}

// One waits until the first of the tasks ends, and calls show for it. end is an
// error with its exit status; err is set if the wait ended early.
func (w Tasks) One(ctx context.Context, r *runner.Runner, p *ui.Printer, show func(jobs.Task) error) (end, err error) {
	err = Each(ctx, r, w.IDs, func() { w.Obstacles.Look(ctx) }, func(t jobs.Task) (more bool, err error) {
		err = show(t)
		end = Finish(p, t)
		return false, err
	})
	if err != nil {
		return nil, Stopped(p, err, w.IDs, len(w.IDs))
	}
	return end, nil
}

// All waits until every task has finished or was deleted. It calls show for
// each, and prints a line to stderr for each that did not complete: end is then
// an error with the exit status. err is set if the wait ended early. A terminal
// shows the progress of a long wait, but not with --json.
func (w Tasks) All(ctx context.Context, r *runner.Runner, p *ui.Printer, show func(jobs.Task) error) (end, err error) {
	bar := ui.NewBar(p, "waiting", "")
	bar.Total = len(w.IDs)
	defer bar.Clear()

	done, failed := 0, 0
	polled := func() {
		if w.Obstacles.due() {
			bar.Clear()
			w.Obstacles.Look(ctx)
		}
		bar.Show(done, failed)
	}

	err = Each(ctx, r, w.IDs, polled, func(t jobs.Task) (bool, error) {
		done++
		bad := t.State != jobs.Completed
		if bad {
			failed++
			end = ui.ExitStatus(1)
		}
		if p.Stdout.TTY || bad {
			bar.Clear()
		}
		if err := show(t); err != nil {
			return false, err
		}
		if bad {
			p.Tell("runner: %s", FailedText(t))
		}

		return true, p.Flush()
	})
	if err != nil {
		bar.Clear()
		return end, Stopped(p, err, w.IDs, len(w.IDs)-done)
	}

	return end, nil
}

// Gone says which ids name no task, and returns the error with which the
// command then ends.
func (w Tasks) Gone(p *ui.Printer) error {
	if len(w.Missing) == 0 {
		return nil
	}
	gone := ui.NoTasks(w.Missing)
	if gone.Told = len(w.IDs) > 0; gone.Told {
		p.Tell("runner: %s", gone.What)
	}
	return gone
}

// NoneInBatch returns an error if a batch has no tasks: it doesn't exist, or
// its tasks were deleted.
func NoneInBatch(ctx context.Context, r *runner.Runner, id int64) error {
	n, err := db.Of(r).CountUpTo(ctx, jobs.Filter{Batch: id}, 1)
	if err == nil && n == 0 {
		err = ui.NotFound("runner list", "no tasks in batch %d", id)
	}
	return err
}
