package db

import (
	"context"
	"slices"
	"strconv"
	"time"

	"example.com/runner/db/internal/sqltext"
	"example.com/runner/jobs"
)

// listByTime reads the tasks of a list that is sorted by {by}, their end time or
// their due time. Tasks with equal times are sorted by id. partEnd returns the
// last task that a part of a list may compare. Indexes: tasks_failed,
// tasks_finished, tasks_due and, for a list that is sorted by id, the primary key.
var (
	listByTime = query(selectTasks + `{where} ORDER BY {by}{direction}, tasks.id{direction}{limit}`)
	partEnd    = query(`SELECT {by} AS at, tasks.id FROM {tasks}{where} ORDER BY {by}{direction}, tasks.id{direction}{limit}`)
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
	At time.Time // time by which the list is sorted; zero if it is sorted by id
	ID int64     // 0 for no task
}

// Part says which part of a list to read.
type Part struct {
	Sort  Sort
	After Mark // last task before the part; zero for the beginning of the list
	Limit int
	Look  int // maximum number of tasks to compare, if no index serves the filter; 0 for no maximum

	end Mark // last task to compare; zero for the end of the list
}

// ListPart returns the tasks of one part of a list. If it stops after p.Look
// tasks, rest is the last one, and the caller goes on after it. rest is zero if
// the list ends here, or if the part is full.
func (d *DB) ListPart(ctx context.Context, f jobs.Filter, p Part) (tasks []jobs.Task, rest Mark, err error) {
	o := order{page: Page{Limit: p.Limit}}
	if p.Sort == ByID {
		if o, err = d.order(ctx, f, o.page); err != nil {
			return nil, rest, err
		}
	}
	if p.Look > 0 && !o.sorts && p.scans(f) {
		if p.end, err = d.partEnd(ctx, f, p); err != nil {
			return nil, rest, err
		}
	}
	s, args := p.statement(f, o)
	if tasks, err = readAs(ctx, d, (*row).task, s, args...); len(tasks) < p.Limit {
		rest = p.end
	}
	return tasks, rest, err
}

// partEnd returns the last of the p.Look tasks that a part may compare, or zero
// if the list has fewer.
func (d *DB) partEnd(ctx context.Context, f jobs.Filter, p Part) (Mark, error) {
	index := jobs.Filter{Before: f.Before}
	if p.Sort == ByEnd && onlyFailed(f) {
		index.States = f.States
	}
	c, parts := p.parts(index)
	parts["limit"] = " LIMIT 1 OFFSET " + strconv.Itoa(p.Look-1)
	marks, err := readRows[struct {
		At number `db:"at"`
		ID int64  `db:"id"`
	}](ctx, d, partEnd.With(parts), c.args...)
	if err != nil || len(marks) == 0 {
		return Mark{}, err
	}
	if p.Sort == ByID {
		return Mark{ID: marks[0].ID}, nil
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
	case p.Sort == ByDue || p.Sort == ByEnd && onlyFailed(f): // an index has these tasks in this order
		return compares
	}
	return compares || len(f.States) > 0 || !f.FinishedBefore.IsZero()
}

func onlyFailed(f jobs.Filter) bool { return slices.Equal(f.States, []jobs.State{jobs.Failed}) }

// statement returns the statement that reads a part, and its arguments. o is the
// order of a list that is sorted by id.
func (p Part) statement(f jobs.Filter, o order) (*statement, []any) {
	c, parts := p.parts(f)
	if p.Sort == ByID {
		return o.statement(c), c.args
	}
	return listByTime.With(parts), c.args
}

// parts returns the condition for a part, and the texts that replace the names
// in braces.
func (p Part) parts(f jobs.Filter) (*condition, sqltext.Parts) {
	parts := sqltext.Parts{"by": "tasks.id", "direction": " DESC", "limit": " LIMIT " + strconv.Itoa(p.Limit)}
	before, after := " <", " >"
	switch p.Sort {
	case ByID:
		if p.After.ID != 0 {
			f.Before = p.After.ID
		}
		f.After = max(f.After, p.end.ID-1)
		c := where(f)
		parts["where"] = c.template()
		return c, parts
	case ByEnd:
		parts["by"] = "tasks.finished_at"
	case ByDue:
		parts["by"], parts["direction"], before, after = "tasks.run_at", "", " >", " <"
		waiting := []jobs.State{jobs.Scheduled, jobs.Retrying}
		if len(f.States) == 0 || slices.ContainsFunc(f.States, func(s jobs.State) bool { return !slices.Contains(waiting, s) }) {
			f.States = waiting
		}
	}

	c := where(f)
	if p.Sort == ByEnd && !onlyFailed(f) {
		c.and("tasks.finished_at IS NOT NULL") // without it SQLite wouldn't use the index tasks_finished
	}
	place := "(" + parts["by"] + ", tasks.id)"
	if p.After.ID != 0 {
		c.and(place+before+" (?, ?)", p.After.At.UnixMilli(), p.After.ID)
	}
	if p.end.ID != 0 {
		c.and(place+after+"= (?, ?)", p.end.At.UnixMilli(), p.end.ID)
	}
	parts["where"] = c.template()
	return c, parts
}

// RecentNames are the queue, the job, the label, the lane and the metadata of a task.
type RecentNames struct {
	Queue    string `db:"queue"`
	Job      string `db:"job"`
	Label    string `db:"label"`
	Lane     string `db:"lane"`
	Metadata string `db:"metadata"` // JSON object; empty if there is none
}

// recentNames reads the names that the newest tasks use, at the end of the table. [1] is the number of these tasks.
var recentNames = query(`SELECT DISTINCT queue, job, coalesce(label, '') AS label, coalesce(lane, '') AS lane,
	coalesce(options ->> 'metadata', '') AS metadata
FROM (SELECT queue, job, label, lane, options FROM {tasks} ORDER BY id DESC LIMIT 0 + ?) AS recent`)

// RecentNames returns the names that the newest tasks use, without duplicates. It looks at no more tasks than the parameter "look" says.
func (d *DB) RecentNames(ctx context.Context, look int) ([]RecentNames, error) {
	return readRows[RecentNames](ctx, d, recentNames, look)
}
