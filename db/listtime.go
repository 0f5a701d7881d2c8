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

// latestFailed fills in {where} and {limit} of listFailures, and returns the arguments.
func latestFailed(f jobs.Filter, most int) (*statement, []any) {
	f.States = []jobs.State{jobs.Failed}
	c := where(f)
	return listFailures.With(sqltext.Parts{"where": c.template(), "limit": " LIMIT " + strconv.Itoa(most)}), c.args
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
	s, args := latestFailed(f, most)
	rows, err := readRows[failure](ctx, d, s, args...)
	list := make([]jobs.Task, len(rows))
	for i, r := range rows {
		list[i] = jobs.Task{ID: r.ID, State: jobs.Failed, FinishedAt: r.FinishedAt.time()}
		list[i].Queue, list[i].Job = r.Queue, r.Job
		r.Outcome.outcome(0, 0).fill(&list[i])
	}
	return list, err
}
