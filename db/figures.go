package db

import (
	"context"
	"slices"
	"time"

	"example.com/runner/jobs"
)

// selectHistory lists how many tasks of each queue ended how, since minute [1] and hour [2].
const selectHistory = `SELECT queue, state, minute * 60 AS at, 60 AS span, n FROM counters WHERE minute >= ?
UNION ALL SELECT queue, state, hour * 3600, 3600, n FROM counter_hours WHERE hour >= ?`

// recentMost is how many tasks the figures of a queue are taken from: the last that ended, of all queues. It bounds what a look costs.
const recentMost = 10_000

// selectRecent lists the waits and durations of the last attempts of tasks of queue [2] that ended since [1], among the last 10,000 that
// ended. Index: tasks_finished, from its end.
const selectRecent = `SELECT started_at - run_at AS wait, duration FROM (SELECT queue, run_at, started_at, duration FROM tasks
	WHERE finished_at >= ?1 ORDER BY finished_at DESC LIMIT 10000) AS recent WHERE queue = ?2 AND started_at IS NOT NULL`

// countStarts counts the attempts of the same tasks that started since [1]. Index: the key of attempt_rows.
const countStarts = `SELECT coalesce(sum((state = 'completed' AND started_at >= ?1) +
	(SELECT count(*) FROM attempt_rows WHERE task_id = recent.id AND attempt_rows.started_at >= ?1)), 0)
FROM (SELECT id, queue, state, started_at FROM tasks WHERE finished_at >= ?1 ORDER BY finished_at DESC LIMIT 10000) AS recent WHERE queue = ?2`

// countOpenStarts counts the attempts that started since [1] of tasks of queue [2] that run or wait for another attempt.
const countOpenStarts = `SELECT (SELECT count(*) FROM tasks WHERE state = 'running' AND queue = ?2 AND started_at >= ?1) +
	(SELECT count(*) FROM tasks CROSS JOIN attempt_rows ON attempt_rows.task_id = tasks.id WHERE tasks.state = 'running' AND queue = ?2 AND attempt_rows.started_at >= ?1) +
	(SELECT count(*) FROM tasks CROSS JOIN attempt_rows ON attempt_rows.task_id = tasks.id WHERE (tasks.state = 'scheduled' OR tasks.state = 'retrying')
		AND queue = ?2 AND attempt_rows.started_at >= ?1)`

// Ended is how many tasks of a queue ended in one way within a minute, or within an hour of more than two days ago.
type Ended struct {
	Queue string
	State jobs.State
	At    time.Time // start of the minute or hour
	Span  time.Duration
	N     int
}

// History returns how many tasks ended since a time, by queue and state, oldest first. It outlives the tasks themselves.
func (d *DB) History(ctx context.Context, since time.Time) ([]Ended, error) {
	var rows []struct {
		Queue string     `db:"queue"`
		State jobs.State `db:"state"`
		At    int64      `db:"at"`
		Span  int64      `db:"span"`
		N     int        `db:"n"`
	}
	if err := d.read.SelectContext(ctx, &rows, selectHistory, since.Unix()/60, since.Unix()/3600); err != nil {
		return nil, explain(err, d.path)
	}
	list := make([]Ended, len(rows))
	for i, r := range rows {
		list[i] = Ended{r.Queue, r.State, time.Unix(r.At, 0).UTC(), time.Duration(r.Span) * time.Second, r.N}
	}
	slices.SortStableFunc(list, func(a, b Ended) int { return a.At.Compare(b.At) })
	return list, nil
}

// Recent is what the last tasks of a queue tell.
type Recent struct {
	Waits, Runs []time.Duration // of the last attempt of each task that ended and had started; sorted
	Starts      int             // attempts that started
	Whole       bool            // every task that ended since then was looked at; else the last 10,000 of all queues, and Starts is of those
}

// Recent returns what the tasks of a queue that ended since a time tell. It looks at no more than 10,000 of them.
func (d *DB) Recent(ctx context.Context, queue string, since time.Time) (Recent, error) {
	var r Recent
	var rows []struct {
		Wait     number `db:"wait"`
		Duration number `db:"duration"`
	}
	ms := since.UnixMilli()
	var ended, open int
	err := d.read.SelectContext(ctx, &rows, selectRecent, ms, queue)
	if err == nil {
		err = d.read.GetContext(ctx, &r.Starts, countStarts, ms, queue)
	}
	if err == nil {
		err = d.read.GetContext(ctx, &open, countOpenStarts, ms, queue)
	}
	if err == nil {
		err = d.read.GetContext(ctx, &ended, finishedSince, ms)
	}
	if err != nil {
		return r, explain(err, d.path)
	}
	r.Starts += open
	r.Whole = ended <= recentMost
	for _, row := range rows {
		r.Waits = append(r.Waits, max(row.Wait.duration(), 0))
		r.Runs = append(r.Runs, row.Duration.duration())
	}
	slices.Sort(r.Waits)
	slices.Sort(r.Runs)
	return r, nil
}
