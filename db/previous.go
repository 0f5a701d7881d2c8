package db

import (
	"context"

	"example.com/runner/db/internal/sqltext"
	"example.com/runner/jobs"
)

// previousAmong is the number of ids, just below the id of the given task, that a call of PreviousRuns searches. This limits the cost of
// a call.
const previousAmong = 5000

// listStarted lists the newest tasks that a filter selects and that have
// started. Indexes: primary key, tasks_tick.
var listStarted = query(`SELECT tasks.id FROM {tasks}{where} AND tasks.started_at IS NOT NULL ORDER BY {by} DESC LIMIT 0 + ?`)

// selectFailedBefore lists the tasks of the JSON array [1] that have failed for
// good and were then retried by a user. Such a retry begins again with attempt 1,
// so an attempt with the same or a lower number follows the failed one.
var selectFailedBefore = query(`SELECT DISTINCT ended.task_id FROM {attempts} AS ended JOIN {tasks} ON tasks.id = ended.task_id
WHERE ended.task_id IN (SELECT CAST(value AS bigint) FROM {json_each}) AND ended.state = 'failed' AND ended.counted = 1
	AND (tasks.attempt < ended.attempt
		OR tasks.attempt = ended.attempt AND (tasks.state = 'running' OR tasks.state = 'completed')
		OR EXISTS (SELECT 1 FROM {attempts} AS later WHERE later.task_id = ended.task_id
			AND later.generation_id > ended.generation_id AND later.counted = 1 AND later.attempt <= ended.attempt))`)

// FailedBefore returns those of the tasks that have failed for good and were
// then retried, whatever has become of them since.
func (d *DB) FailedBefore(ctx context.Context, ids []int64) (map[int64]bool, error) {
	list, err := readRows[int64](ctx, d, selectFailedBefore, jsonText(ids))
	failed := make(map[int64]bool, len(list))
	for _, id := range list {
		failed[id] = true
	}
	return failed, err
}

// PreviousRuns returns the ids of up to n earlier tasks that ran the same function or command as task t, newest first. It leaves out tasks
// that have not started. For a task of a schedule it finds all earlier tasks of that schedule. For another task it searches only the 5000
// ids before the id of t.
func (d *DB) PreviousRuns(ctx context.Context, t jobs.Task, n int) ([]int64, error) {
	s, args := previousRuns(t)
	return readRows[int64](ctx, d, s, append(args, n)...)
}

// previousRuns fills in listStarted, and returns its arguments without the last.
func previousRuns(t jobs.Task) (*statement, []any) {
	c, by := where(jobs.Filter{Before: t.ID, After: t.ID - previousAmong - 1, Jobs: []string{t.Job}}), "tasks.id"
	switch {
	case t.Schedule != "" && !t.Tick.IsZero():
		c, by = &condition{}, "tasks.tick"
		c.and("tasks.schedule = ? AND tasks.tick < ?", t.Schedule, t.Tick.UnixMilli())
	case t.Job != jobs.CommandJob:
	case t.Label != "":
		c.and("tasks.label = ?", t.Label)
	default: // compare the lengths first, so that few arguments are read
		c.and("tasks.label IS NULL AND octet_length(tasks.args) = ? AND tasks.args = ?", len(t.Args), string(t.Args))
	}
	return listStarted.With(sqltext.Parts{"where": c.template(), "by": by}), c.args
}
