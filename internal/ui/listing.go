package ui

import (
	"cmp"
	"context"
	"slices"

	"example.com/runner/db"
	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Listing says which tasks to print, and how.
type Listing struct {
	Filter       jobs.Filter
	Rows         int // maximum number of rows; 0 means all
	Compared     int // maximum number of tasks compared by their metadata; 0 means maxCompared
	Oldest       bool
	ByDue        bool // whether to list scheduled and retrying tasks, the one that is due next first
	Wide, Reveal bool
}

// Print prints the selected tasks.
func (o Listing) Print(ctx context.Context, r *runner.Runner, p *Printer) error {
	held, err := ReadHolds(ctx, r)
	if err != nil {
		return err
	}

	sheet := TaskSheet(held, p.Now(), o.Wide)
	n := 0
	rest, err := o.Each(ctx, r, func(t jobs.Task) error {
		n++
		if !o.Reveal {
			return sheet.Add(p, t)
		}
		input, err := ReadInput(ctx, r, t)
		sheet.Record = func(t jobs.Task) Record { return Reveal(NewTask(t, p.Now()), t.Env, input) }
		return cmp.Or(err, sheet.Add(p, t))
	})
	if err != nil {
		return err
	}

	sheet.End(p)
	if err := MissingTasks(ctx, r, o.Filter.IDs); err != nil {
		return err
	}

	if n == 0 {
		p.Note("no tasks")
		if err := WarnUnknown(ctx, r, p, o.Filter); err != nil {
			return err
		}
	}

	if rest > 0 {
		p.Say("stopped at task %d after comparing the metadata of %s tasks; --before %[1]d for older tasks, -n 0 for all",
			rest, humanize.Count(int64(o.compared())))
	}

	if n > 0 && n == o.Rows && p.Interactive() {
		p.Flush() // to count all selected tasks may take long, so print the rows first
		all, err := db.Of(r).Count(ctx, o.Filter)
		if err != nil {
			return err
		}
		if all > n {
			p.Note("%s of %s tasks; -n 0 for all", humanize.Count(int64(n)), humanize.Count(int64(all)))
		}
	}

	return nil
}

// PrintGroups prints groups of failed tasks.
func (o Listing) PrintGroups(ctx context.Context, r *runner.Runner, p *Printer) error {
	groups, err := ReadFailures(ctx, r, o.Filter, MaxGrouped)
	if err != nil {
		return err
	}

	all, tasks := len(groups), 0
	for _, g := range groups {
		tasks += len(g.IDs)
	}

	if o.Rows > 0 {
		groups = groups[:min(len(groups), o.Rows)]
	}

	if err := failureSheet(o.Filter, p.Now(), o.Wide).Print(p, groups); err != nil {
		return err
	}

	if all == 0 {
		p.Note("no failed tasks")
		return WarnUnknown(ctx, r, p, o.Filter)
	}

	text := "%s in %s"
	if tasks == MaxGrouped {
		text = "the last " + text + " (earlier failures are not counted)"
	}

	p.Note(text+"; retry a group: %s", humanize.Plural(tasks, "failed task"), humanize.Plural(all, "group"),
		RetryGroup(o.Filter, groups[0].Key))
	return nil
}

// maxCompared is how many tasks a list compares by their metadata before it
// stops, which takes about a second. A list of all rows (-n 0) doesn't stop.
const maxCompared = 1_000_000

func (o Listing) compared() int { return cmp.Or(o.Compared, maxCompared) }

// Each calls yield for each selected task. It reads the tasks page by page, so
// it needs little memory and no long transaction. rest is the task at which a
// search by metadata has stopped, or 0.
func (o Listing) Each(ctx context.Context, r *runner.Runner, yield func(jobs.Task) error) (rest int64, err error) {
	const page = 1000
	filter, part, left := o.Filter, db.Part{}, o.Rows
	switch {
	case o.ByDue:
		part.Sort = db.ByDue
	case len(filter.Metadata) > 0 && o.Rows > 0:
		part.Look = o.compared()
	}

	for {
		part.Limit = page
		if o.Rows > 0 {
			part.Limit = min(page, left)
		}

		var tasks []jobs.Task
		var stop db.Mark
		if o.Oldest {
			filter.Limit, filter.OldestFirst = part.Limit, true
			tasks, err = r.List(ctx, filter)
		} else {
			tasks, stop, err = db.Of(r).ListPart(ctx, filter, part)
		}
		if err != nil {
			return 0, err
		}

		for _, t := range tasks {
			if err := yield(t); err != nil {
				return 0, err
			}
		}

		if left -= len(tasks); len(tasks) < part.Limit || left == 0 {
			return stop.ID, nil
		}

		last := tasks[len(tasks)-1]
		part.After = db.Mark{At: last.RunAt, ID: last.ID}
		if o.Oldest {
			filter.After = last.ID
		}
	}
}

// MissingTasks returns an error that names the ids without a task, or nil.
func MissingTasks(ctx context.Context, r *runner.Runner, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}

	existing, err := db.Of(r).IDs(ctx, jobs.Filter{IDs: ids, OldestFirst: true})
	if err != nil {
		return err
	}

	missing := slices.DeleteFunc(slices.Clone(ids), func(id int64) bool {
		_, found := slices.BinarySearch(existing, id)
		return found
	})
	if len(missing) > 0 {
		return NoTasks(missing)
	}

	return nil
}
