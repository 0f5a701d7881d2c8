package main

import (
	"context"
	"database/sql"
	"fmt"

	"example.com/runner/runner"
)

// A pile is a large number of tasks that fill a database before a measurement.
// The measurement then shows whether the worker slows down. The worker leaves
// these tasks alone until it has run the measured tasks.
type pile struct {
	name, state, job string
	rows             int
}

// piles lists the piles of tasks that are measured. The first pile is small:
// the report compares the figures of the other piles with the figure of this
// one.
var piles = []pile{
	{"1 k pending", "pending", "noop", 1000},
	{"5 M pending", "pending", "noop", 5_000_000},
	{"5 M finished", "completed", "noop", 5_000_000},
	{"1 M scheduled", "scheduled", "noop", 1_000_000},
	{"1 M of another job", "pending", "foreign", 1_000_000},
}

// addPile adds ?3 tasks of job ?2 in state ?1. Pending tasks of the measured
// job have a lower priority than the measured tasks, so the worker runs them
// last. Tasks that the worker can't run yet, or not at all, have a higher
// priority, so each search for a task meets them first. Finished tasks have
// ended within the last hours, so the worker doesn't delete them as old.
const addPile = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?3)
INSERT INTO tasks (generation_id, state, queue, job, args, priority, run_at, max_attempts, max_losses, attempt, worker, started_at,
	finished_at,
	created_at, updated_at)
SELECT 3, ?1, 'default', ?2, '{"n":0}', CASE WHEN ?1 = 'scheduled' OR ?2 = 'foreign' THEN 9 ELSE 0 END,
	CASE ?1 WHEN 'scheduled' THEN 4102444800000 + i ELSE 1 END, 2, 3,
	?1 = 'completed', CASE ?1 WHEN 'completed' THEN 1 END, CASE ?1 WHEN 'completed' THEN 1 END,
		CASE ?1 WHEN 'completed' THEN unixepoch() * 1000 - i END, 1, 1 FROM n`

// perTask measures how long a worker needs to claim, run and finish a task
// while the tasks of p are in the same database. The worker runs ten tasks at a
// time. The result is in microseconds per task.
func (p pile) perTask(ctx context.Context, e *env) (float64, error) {
	const tasks = 10_000
	l := newLedger(tasks)
	q, err := ours("", runner.SyncNormal).open(ctx, e, 10, func(p payload) {
		if p.N > 0 {
			l.note(p.N - 1)
		}
	})
	if err != nil {
		return 0, err
	}
	defer q.close()

	pool, err := sql.Open("sqlite", dsn(e.path("runner.db"), "NORMAL"))
	if err != nil {
		return 0, err
	}
	defer pool.Close()

	if _, err := pool.ExecContext(ctx, addPile, p.state, p.job, e.size(p.rows)); err != nil {
		return 0, err
	}
	if err := q.addMany(ctx, payloads(1, tasks)); err != nil {
		return 0, err
	}
	if _, err := pool.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
		return 0, err
	}

	took, err := q.run(ctx, l)
	if err != nil {
		return 0, fmt.Errorf("beside %s: %w", p.name, err)
	}

	return float64(took.Microseconds()) / tasks, nil
}
