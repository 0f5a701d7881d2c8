package main

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"example.com/runner/runner"
)

// beneath fills a database with rows that are never claimed here: pending ones of a lower priority and finished ones, half each.
const beneath = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
INSERT INTO tasks (generation_id, state, queue, job, args, priority, run_at, max_attempts, max_losses, attempt, worker, started_at, finished_at,
	created_at, updated_at)
SELECT 3, CASE i % 2 WHEN 0 THEN 'pending' ELSE 'completed' END, 'default', 'noop', '{"n":0}', 0, 1, 2, 3, i % 2,
	CASE i % 2 WHEN 1 THEN 1 END, CASE i % 2 WHEN 1 THEN 1 END, CASE i % 2 WHEN 1 THEN i END, 1, 1 FROM n`

// grown claims and finishes 2000 tasks, ten at a time, in a database with n other rows: microseconds each.
func grown(n int) func(context.Context, *env) (float64, error) {
	return func(ctx context.Context, e *env) (float64, error) {
		n := e.size(n)
		q, err := ours("", runner.Normal).open(ctx, e, 1, nil)
		if err != nil {
			return 0, err
		}
		defer q.close()
		pool, err := sql.Open("sqlite", dsn(e.path("runner.db"), "NORMAL"))
		if err != nil {
			return 0, err
		}
		defer pool.Close()
		if _, err := pool.ExecContext(ctx, beneath, n); err != nil {
			return 0, err
		}
		const tasks = 2000
		if err := q.addMany(ctx, payloads(0, tasks)); err != nil {
			return 0, err
		}
		if _, err := pool.ExecContext(ctx, `PRAGMA wal_checkpoint(TRUNCATE)`); err != nil {
			return 0, err
		}
		b, done, err := openBare(ctx, e.path("runner.db"), "NORMAL")
		if err != nil {
			return 0, err
		}
		defer done()
		began := time.Now()
		var batch []claimed
		for finished := 0; finished < tasks; finished += len(batch) {
			if batch, err = b.turn(ctx, batch, 10); err != nil {
				return 0, err
			}
			if len(batch) != 10 {
				return 0, fmt.Errorf("claimed %d of 10", len(batch))
			}
		}
		return float64(time.Since(began).Microseconds()) / tasks, nil
	}
}
