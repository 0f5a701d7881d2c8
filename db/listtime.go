package db

import (
	"context"
	"slices"
	"strconv"
	"time"

	"example.com/runner/db/internal/sqltext"
	"example.com/runner/jobs"
)

// listByTime reads the tasks that a filter selects, ordered by one of their times. Tasks with equal times are ordered by id. Indexes:
// tasks_failed, tasks_finished and tasks_due.
var listByTime = query(selectTasks + `{where} ORDER BY {time}{direction}, tasks.id{direction}{limit}`)

// TimeOrder orders a list by a time, and says where the list begins.
type TimeOrder struct {
	Due   bool      // whether the list is ordered by due time, the earliest first; otherwise by the time of the end, the latest first
	At    time.Time // time of the task after which the list begins; zero for the whole list
	ID    int64     // id of the task after which the list begins
	Limit int       // maximum number of tasks

	end TimeMark // last task to read; zero to read the list to its end
}

// statement returns the statement that lists the tasks of a filter in this order, and the arguments of the statement. It selects only tasks
// that have the time by which the list is ordered.
func (o TimeOrder) statement(f jobs.Filter) (*statement, []any) {
	parts, args := o.parts(f)
	return listByTime.With(parts), args
}

// parts returns the texts that replace the names in braces in a statement that reads a list in this order. It also returns the arguments of
// the statement.
func (o TimeOrder) parts(f jobs.Filter) (sqltext.Parts, []any) {
	waiting := []jobs.State{jobs.Scheduled, jobs.Retrying}
	if o.Due && (len(f.States) == 0 || slices.ContainsFunc(f.States, func(s jobs.State) bool { return !slices.Contains(waiting, s) })) {
		f.States = waiting
	}
	c := where(f)
	parts := sqltext.Parts{"time": "tasks.finished_at", "direction": " DESC", "limit": " LIMIT " + strconv.Itoa(o.Limit)}
	before, after := " <", " >"
	if o.Due {
		parts["time"], parts["direction"], before, after = "tasks.run_at", "", " >", " <"
	} else if !slices.Equal(f.States, []jobs.State{jobs.Failed}) {
		c.and("tasks.finished_at IS NOT NULL") // without this condition SQLite would not use the index tasks_finished
	}
	if !o.At.IsZero() {
		c.and("("+parts["time"]+", tasks.id)"+before+" (?, ?)", o.At.UnixMilli(), o.ID)
	}
	if o.end.ID != 0 {
		c.and("("+parts["time"]+", tasks.id)"+after+"= (?, ?)", o.end.At.UnixMilli(), o.end.ID)
	}
	parts["where"] = c.template()
	return parts, c.args
}

// ListByTime returns the tasks that a filter selects, ordered by due time or by end time. A list by due time has only scheduled and
// retrying tasks. A list by end time has only finished tasks.
func (d *DB) ListByTime(ctx context.Context, f jobs.Filter, o TimeOrder) ([]jobs.Task, error) {
	s, args := o.statement(f)
	return readAs(ctx, d, (*row).task, s, args...)
}

// listFailures reads the failed tasks that a filter selects, up to the number in {limit}, the latest failure first. Index: tasks_failed.
var listFailures = query(`SELECT tasks.id, tasks.queue, tasks.job, tasks.finished_at, tasks.outcome FROM {tasks}{where}
ORDER BY tasks.finished_at DESC, tasks.id DESC{limit}`)

// markFailures selects the same tasks as listFailures, and returns their ids and their end times as two JSON arrays in one row. A query
// that returns one row per task takes ten times as long. Index: tasks_failed.
var markFailures = query(`SELECT {json_list}(id) AS ids, {json_list}(finished_at) AS ends FROM (SELECT tasks.id, tasks.finished_at
FROM {tasks}{where} ORDER BY tasks.finished_at DESC, tasks.id DESC{limit}) AS latest`)

// latestFailed fills in {where} and {limit} of listFailures or markFailures, and returns the arguments.
func latestFailed(q *statement, f jobs.Filter, most int) (*statement, []any) {
	f.States = []jobs.State{jobs.Failed}
	c := where(f)
	return q.With(sqltext.Parts{"where": c.template(), "limit": " LIMIT " + strconv.Itoa(most)}), c.args
}

// Failures returns the failed tasks that a filter selects, the latest failure first, and at most as many as the parameter "most" says. It
// sets only the fields that identify a task and describe its failure.
func (d *DB) Failures(ctx context.Context, f jobs.Filter, most int) ([]jobs.Task, error) {
	type failure struct {
		ID         int64  `db:"id"`
		Queue      string `db:"queue"`
		Job        string `db:"job"`
		FinishedAt number `db:"finished_at"`
		Outcome    text   `db:"outcome"`
	}
	s, args := latestFailed(listFailures, f, most)
	rows, err := readRows[failure](ctx, d, s, args...)
	list := make([]jobs.Task, len(rows))
	for i, r := range rows {
		list[i] = jobs.Task{ID: r.ID, State: jobs.Failed, FinishedAt: r.FinishedAt.time()}
		list[i].Queue, list[i].Job = r.Queue, r.Job
		r.Outcome.outcome(0, 0).fill(&list[i])
	}
	return list, err
}

// FailureMarks returns the end times and the ids of the tasks that Failures returns for the same arguments.
func (d *DB) FailureMarks(ctx context.Context, f jobs.Filter, most int) ([]TimeMark, error) {
	s, args := latestFailed(markFailures, f, most)
	rows, err := readRows[struct {
		IDs  text `db:"ids"`
		Ends text `db:"ends"`
	}](ctx, d, s, args...)
	if err != nil {
		return nil, err
	}
	ids, ends := rows[0].IDs.ids(), rows[0].Ends.ids()
	marks := make([]TimeMark, min(len(ids), len(ends)))
	for i := range marks {
		marks[i] = TimeMark{number(ends[i]).time(), ids[i]}
	}
	return marks, nil
}
