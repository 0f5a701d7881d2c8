package db

import (
	"context"
	"math"
	"slices"
	"strconv"
	"time"

	"example.com/runner/jobs"
)

// The list functions in this file search only a limited number of tasks in one call. A search that no index serves compares the tasks one
// by one, which could take long. So a function stops after some tasks, and returns the last task at which it has looked. The next call
// continues there.

// newestFloor returns the id at which a bounded search from the newest task to older ones ends. It skips the [2] newest tasks with ids
// below [1], and returns the id of the next task. It reads only the end of the table.
var newestFloor = query(`SELECT id FROM {tasks} WHERE id < ? ORDER BY id DESC LIMIT 1 OFFSET 0 + ?`)

// timeFloor returns the last task that a bounded search may examine: its time and its id. The search goes through the tasks in the order of
// {time}, which is their end time or their due time. Indexes: tasks_failed, tasks_finished and tasks_due.
var timeFloor = query(`SELECT {time} AS at, tasks.id FROM {tasks}{where} ORDER BY {time}{direction}, tasks.id{direction}{limit}`)

// TimeMark is the place of a task in a list that is ordered by time.
type TimeMark struct {
	At time.Time
	ID int64 // id of the task; 0 for no task
}

// scans reports whether the engine compares tasks one by one to find those that a filter selects.
func scans(f jobs.Filter) bool {
	if f.IDs != nil || f.Batch != 0 || f.Schedule != "" || f.Paused {
		return false
	}
	return len(f.States) > 0 || !f.Since.IsZero() || !f.Until.IsZero() || !f.FinishedBefore.IsZero() || compares(f)
}

// The function "compares" reports whether a filter has conditions other than the states, the times and the ids of tasks.
func compares(f jobs.Filter) bool {
	return len(f.Queues) > 0 || len(f.Jobs) > 0 || comparesText(f)
}

func comparesText(f jobs.Filter) bool {
	return f.Label != "" || f.Lane != "" || f.Worker != "" || f.Match != "" || len(f.Metadata) > 0
}

// ListBounded does the same as List for the newest tasks, but with a limited search. If it must compare tasks one by one, it looks at no
// more tasks than the parameter "look" says. If such a search ends early, the result "rest" is the id of the last task at which it has
// looked, and the caller continues with the tasks with lower ids. The result "rest" is 0 if ListBounded has looked at all tasks, or has
// found as many as the parameter "limit" says.
func (d *DB) ListBounded(ctx context.Context, f jobs.Filter, limit, look int) (tasks []jobs.Task, rest int64, err error) {
	o, err := d.order(ctx, f, Page{Limit: limit})
	if err != nil {
		return nil, 0, err
	}
	var floor []int64
	if scans(f) && !o.sorts {
		before := f.Before
		if before == 0 {
			before = math.MaxInt64
		}
		if floor, err = readRows[int64](ctx, d, newestFloor, before, look-1); err != nil {
			return nil, 0, err
		}
	}
	if len(floor) == 0 {
		tasks, err = d.list(ctx, f, o)
		return tasks, 0, err
	}
	part := f
	part.After = max(f.After, floor[0]-1)
	if tasks, err = d.list(ctx, part, o); err != nil || len(tasks) == limit {
		return tasks, 0, err
	}
	return tasks, floor[0], nil
}

// ListByTimeBounded does the same as ListByTime, but with a limited search. If it must compare tasks one by one, it looks at no more tasks
// than the parameter "look" says. If such a search ends early, the result "rest" is the last task at which it has looked, and the caller
// continues with the tasks after it. The result "rest" is zero if ListByTimeBounded has looked at all tasks, or has found as many as
// o.Limit says.
func (d *DB) ListByTimeBounded(ctx context.Context, f jobs.Filter, o TimeOrder, look int) (tasks []jobs.Task, rest TimeMark, err error) {
	failed := slices.Equal(f.States, []jobs.State{jobs.Failed})
	if indexed := (failed || o.Due) && !compares(f) && f.Since.IsZero() && f.Until.IsZero(); scans(f) && !indexed {
		index := jobs.Filter{}
		if failed {
			index.States = f.States
		}
		parts, args := o.parts(index)
		parts["limit"] = " LIMIT 1 OFFSET " + strconv.Itoa(look-1)
		marks, err := readRows[struct {
			At number `db:"at"`
			ID int64  `db:"id"`
		}](ctx, d, timeFloor.With(parts), args...)
		if err != nil {
			return nil, rest, err
		}
		if len(marks) > 0 {
			o.end = TimeMark{marks[0].At.time(), marks[0].ID}
		}
	}
	if tasks, err = d.ListByTime(ctx, f, o); len(tasks) < o.Limit {
		rest = o.end
	}
	return tasks, rest, err
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
