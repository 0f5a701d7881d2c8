package db

import (
	"context"
	"slices"
	"strconv"
	"time"

	"example.com/runner/db/internal/sqltext"
	"example.com/runner/jobs"
)

// Sort is the order of a list.
type Sort int

// These are the orders of a list.
const (
	ByID  Sort = iota // newest task first
	ByEnd             // finished tasks, the one that ended last first
	ByDue             // scheduled and retrying tasks, the one that is due next first
)

// Mark is the place of a task in a list.
type Mark struct {
	At time.Time // time by which the list is sorted; without a meaning if it is sorted by id
	ID int64     // 0 for no task
}

// Part says which part of a list to read.
type Part struct {
	Sort   Sort
	Oldest bool // only for ByID: whether the oldest task comes first
	After  Mark // last task before the part; zero for the beginning of the list, and with Oldest
	Limit  int  // 0 for all tasks
	Look   int  // maximum number of tasks to compare, if no index serves the filter; 0 for no maximum

	end   Mark // last task to compare; zero for the end of the list
	sorts bool // only for ByID: see DB.sorts
}

// ListPart returns the tasks of one part of a list. If it stops after p.Look
// tasks, rest is the last one, and the caller goes on after it. rest is zero if
// the list ends here, or if the part is full.
func (d *DB) ListPart(ctx context.Context, f jobs.Filter, p Part) (tasks []jobs.Task, rest Mark, err error) {
	if p.Sort == ByID {
		if p.sorts, err = d.sorts(ctx, f); err != nil {
			return nil, rest, err
		}
	}
	if p.Look > 0 && !p.sorts && p.scans(f) {
		if p.end, err = d.partEnd(ctx, f, p); err != nil {
			return nil, rest, err
		}
	}

	template := listTasks
	if p.sorts && p.Limit > 0 {
		template = listSorted
	}

	s, args := p.statement(template, f)
	if tasks, err = readAs(ctx, d, (*row).task, s, args...); len(tasks) < p.Limit {
		rest = p.end
	}

	return tasks, rest, err
}

// partEnd returns the last of the p.Look tasks that a part may compare, or zero
// if the list has fewer.
func (d *DB) partEnd(ctx context.Context, f jobs.Filter, p Part) (Mark, error) {
	index := jobs.Filter{Before: f.Before}
	if p.Sort == ByEnd && selectsFailed(f) {
		index.States = f.States
	}

	skipped := p.Look - 1
	p.Limit = 1
	s, args := p.statement(partEnd, index)
	marks, err := readRows[struct {
		At number `db:"at"`
		ID int64  `db:"id"`
	}](ctx, d, s, append(args, skipped)...)
	if err != nil || len(marks) == 0 {
		return Mark{}, err
	}

	return Mark{marks[0].At.time(), marks[0].ID}, nil
}

// scans reports whether the engine compares tasks one by one to find those that
// a filter selects.
func (p Part) scans(f jobs.Filter) bool {
	compares := len(f.Queues) > 0 || len(f.Jobs) > 0 || f.Label != "" || f.Lane != "" || f.Worker != "" || f.Match != "" ||
		len(f.Metadata) > 0 || !f.Since.IsZero() || !f.Until.IsZero()
	switch {
	case f.IDs != nil || f.Batch != 0 || f.Schedule != "" || f.Paused:
		return false
	case p.Sort == ByDue || p.Sort == ByEnd && selectsFailed(f): // an index has these tasks in this order
		return compares
	}

	return compares || len(f.States) > 0 || !f.FinishedBefore.IsZero()
}

func selectsFailed(f jobs.Filter) bool { return slices.Equal(f.States, []jobs.State{jobs.Failed}) }

// statement fills a template of list.go in for a part. It also returns the
// arguments. A unary plus before the id keeps SQLite from reading the table in
// the order of the ids.
func (p Part) statement(template *statement, f jobs.Filter) (*statement, []any) {
	by, direction, before, after := "tasks.id", " DESC", " <", " >"
	switch p.Sort {
	case ByID:
		if p.After.ID != 0 {
			f.Before = p.After.ID
		}
		f.After = max(f.After, p.end.ID-1)
		if p.Oldest {
			direction = ""
		}
		if p.sorts {
			by = "+tasks.id"
		}
	case ByEnd:
		by = "tasks.finished_at"
	case ByDue:
		by, direction, before, after = "tasks.run_at", "", " >", " <"
		waiting := []jobs.State{jobs.Scheduled, jobs.Retrying}
		if len(f.States) == 0 || slices.ContainsFunc(f.States, func(s jobs.State) bool { return !slices.Contains(waiting, s) }) {
			f.States = waiting
		}
	}

	c, order := where(f), " ORDER BY "+by+direction
	if p.Sort == ByEnd && !selectsFailed(f) {
		c.add("tasks.finished_at IS NOT NULL") // without it SQLite wouldn't use the index tasks_finished
	}
	if p.Sort != ByID {
		order += ", tasks.id" + direction
		place := "(" + by + ", tasks.id)"
		if p.After.ID != 0 {
			c.add(place+before+" (?, ?)", p.After.At.UnixMilli(), p.After.ID)
		}
		if p.end.ID != 0 {
			c.add(place+after+"= (?, ?)", p.end.At.UnixMilli(), p.end.ID)
		}
	}
	if p.Limit > 0 {
		order += " LIMIT " + strconv.Itoa(p.Limit)
	}

	return template.With(sqltext.Parts{"where": c.template(), "by": by, "direction": direction, "order": order}), c.args
}
