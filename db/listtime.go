package db

import (
	"context"
	"strconv"

	"example.com/runner/db/internal/sqltext"
	"example.com/runner/jobs"
)

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
func (d *DB) FailureMarks(ctx context.Context, f jobs.Filter, most int) ([]Mark, error) {
	s, args := latestFailed(markFailures, f, most)
	rows, err := readRows[struct {
		IDs  text `db:"ids"`
		Ends text `db:"ends"`
	}](ctx, d, s, args...)
	if err != nil {
		return nil, err
	}
	ids, ends := rows[0].IDs.ids(), rows[0].Ends.ids()
	marks := make([]Mark, min(len(ids), len(ends)))
	for i := range marks {
		marks[i] = Mark{number(ends[i]).time(), ids[i]}
	}
	return marks, nil
}
