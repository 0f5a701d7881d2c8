package output

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Selection says which tasks' output to print, and which part of it.
type Selection struct {
	Filter jobs.Filter
	Range  Range
	Since  time.Time // skip output that is older than this time; if it is zero, skip nothing
}

// Show prints the output that the database has now.
func (o Selection) Show(ctx context.Context, r *runner.Runner, to *LogPrinter) error {
	ids := o.Filter.IDs
	if len(ids) == 0 {
		var err error
		if ids, err = o.matches(ctx, r); err != nil {
			return err
		}
	}

	to.Named = len(ids) > 1
	for part := range slices.Chunk(ids, 100) {
		tasks, err := r.List(ctx, jobs.Filter{IDs: part})
		if err != nil {
			return err
		}

		for _, id := range part {
			i := slices.IndexFunc(tasks, func(t jobs.Task) bool { return t.ID == id })
			if i < 0 {
				continue // MissingTasks names it
			}

			one := Cursor{Range: o.Range}
			if _, err := one.Advance(ctx, r, tasks[i], to); err != nil {
				return err
			}
			if err := to.EndLines(tasks[i]); err != nil {
				return err
			}
			if len(o.Filter.IDs) > 0 {
				noteWithoutOutput(to.P, tasks[i], o.Range)
			}
		}
	}

	return ui.MissingTasks(ctx, r, o.Filter.IDs)
}

// noteWithoutOutput says why there is no output, if the task or the attempt
// hasn't started.
func noteWithoutOutput(p *ui.Printer, t jobs.Task, which Range) {
	switch {
	case t.StartedAt.IsZero():
		p.Tell("task %d has not started; runner logs -f %[1]d follows it", t.ID)
	case which.N > t.Attempt:
		p.Tell("task %d has no attempt %d; the last one is %d", t.ID, which.N, t.Attempt)
	}
}

// matches returns the ids of the tasks that match the filter, oldest first,
// without those that have ended before Since.
func (o Selection) matches(ctx context.Context, r *runner.Runner) ([]int64, error) {
	if o.Since.IsZero() {
		f := o.Filter
		f.OldestFirst = true
		return db.Of(r).IDs(ctx, f)
	}

	var ids []int64
	for _, states := range [][]jobs.State{taskspec.Finished(), taskspec.Unfinished()} {
		f := o.Filter
		if len(f.States) > 0 {
			states = slices.DeleteFunc(states, func(s jobs.State) bool { return !slices.Contains(f.States, s) })
		}
		if f.States = states; len(states) == 0 {
			continue
		}
		if states[0].Finished() {
			f.Since = o.Since
		}

		more, err := db.Of(r).IDs(ctx, f)
		if err != nil {
			return nil, err
		}

		ids = append(ids, more...)
	}

	slices.Sort(ids)
	return ids, nil
}

// FollowIDs prints the output of the tasks with the filter's ids until all of
// them have finished.
func (o Selection) FollowIDs(ctx context.Context, r *runner.Runner, to *LogPrinter) error {
	w, err := Select(ctx, r, o.Filter)
	if err != nil {
		return err
	}
	to.Named = len(o.Filter.IDs) > 1
	gone := w.Gone(to.P)
	if len(w.IDs) == 0 {
		return gone
	}
	return cmp.Or(Follow(ctx, r, w.IDs, o.Range, to), gone)
}

// overlap is a margin: a worker reads a task's end time from its clock before
// it commits, so the end may become visible only after a poll that is later.
// Each poll looks back this far.
const overlap = 5 * time.Second

// FollowFilter prints the output of the tasks that match a filter, until ctx
// ends: those that run now, and those that start later. A task may start and
// end between two polls, so it also reads tasks that have ended recently.
func (o Selection) FollowFilter(ctx context.Context, r *runner.Runner, to *LogPrinter) error {
	p := to.P
	to.Named = true
	began := p.Now()
	lastPoll := began
	which := o.Range
	which.Began = began
	running := map[int64]*Cursor{}
	shown := map[int64]jobs.Task{} // recently ended tasks whose output is completely printed
	return Changes(ctx, r, func() (bool, error) {
		from := lastPoll.Add(-overlap)
		lastPoll = p.Now()
		tasks, err := o.active(ctx, r, from, slices.Collect(maps.Keys(running)))
		if err != nil {
			return false, err
		}

		for _, t := range tasks {
			if last, ok := shown[t.ID]; ok && last.GenerationID == t.GenerationID {
				continue
			}
			if running[t.ID] == nil {
				running[t.ID] = &Cursor{Range: which}
			}

			done, err := running[t.ID].Advance(ctx, r, t, to)
			if err != nil {
				return false, err
			}
			if done {
				delete(running, t.ID)
				shown[t.ID] = t
			}
		}

		which.Lines = -1 // print all lines of tasks that appear after the first poll
		maps.DeleteFunc(shown, func(_ int64, t jobs.Task) bool { return t.FinishedAt.Before(from.Add(-overlap)) })
		return false, p.Flush()
	})
}

// active returns the tasks that match the filter and run, or have ended since
// then, and those with known ids, sorted by id.
func (o Selection) active(ctx context.Context, r *runner.Runner, since time.Time, known []int64) ([]jobs.Task, error) {
	var tasks []jobs.Task
	filters := []jobs.Filter{o.Filter, o.Filter}
	filters[0].States = []jobs.State{jobs.Running}
	filters[1].States, filters[1].Since = taskspec.Finished(), since
	if len(known) > 0 {
		filters = append(filters, jobs.Filter{IDs: known})
	}

	for _, f := range filters {
		more, err := r.List(ctx, f)
		if err != nil {
			return nil, err
		}
		tasks = append(tasks, more...)
	}

	// A task that changed its state between two reads occurs twice: keep the
	// record with the higher generation.
	slices.SortStableFunc(tasks, func(a, b jobs.Task) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(b.GenerationID, a.GenerationID))
	})

	return slices.CompactFunc(tasks, func(a, b jobs.Task) bool { return a.ID == b.ID }), nil
}
