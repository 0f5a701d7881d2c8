package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/postgres"
)

// fill inserts tasks $1 to $2 of job $3 in one statement, half of them pending
// and half completed. The row of a completed task has the same values as if a
// worker had run the task.
const fill = `INSERT INTO runner.tasks (generation_id, job, args, queue, state, priority, run_at, max_attempts, max_losses,
	attempt, worker, started_at, finished_at, created_at, updated_at)
SELECT CASE WHEN done THEN 3 ELSE 1 END, $3, '{"n":' || i ||
	',"to":"someone@example.com","subject":"a payload of about one hundred bytes, as tasks have"}', 'default',
	CASE WHEN done THEN 'completed' ELSE 'pending' END, 5, at, 1, 3, CASE WHEN done THEN 1 ELSE 0 END, CASE WHEN done THEN 1 END,
	CASE WHEN done THEN at END, CASE WHEN done THEN at END, at, at
FROM generate_series($1::bigint, $2::bigint) AS i, LATERAL (SELECT i % 2 = 0 AS done, $4::bigint AS at) AS how`

// grown fills a database step by step, half with pending and half with
// completed tasks. After each step it prints the cost of running further tasks
// in this database, ten at a time and a hundred at a time. The cost includes
// all work of the worker. grown also prints the times of an enqueue and of a
// list.
func grown(ctx context.Context, e *env, rows int) error {
	r, err := runner.Open(ctx, e.address, runner.Options{Engine: postgres.Engine()})
	if err != nil {
		return err
	}
	defer r.Close()

	conn, err := pgx.Connect(ctx, e.address)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)

	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "rows\tsize MB\tfilled in\t10 at a time, µs each\t100 at a time, µs each\tenqueue p50, ms\tlist, ms")
	from := 0
	for _, to := range append(slices.DeleteFunc([]int{1000, 10_000, 100_000, 1_000_000}, func(n int) bool { return n >= rows }), rows) {
		began := time.Now()
		for from < to {
			n := min(to, from+500_000)
			if _, err := conn.Exec(ctx, fill, from+1, n, "noop", time.Now().UnixMilli()); err != nil {
				return err
			}
			from = n
		}

		if _, err := conn.Exec(ctx, "ANALYZE runner.tasks"); err != nil {
			return err
		}

		took := time.Since(began)
		var megabytes float64
		if err := conn.QueryRow(ctx, "SELECT pg_total_relation_size('runner.tasks') / 1e6::float8").Scan(&megabytes); err != nil {
			return err
		}

		ten, err := workSome(ctx, e.address, 10, min(to/8, 2000))
		if err != nil {
			return err
		}

		hundred, err := workSome(ctx, e.address, 100, min(to/8, 10_000))
		if err != nil {
			return err
		}

		enqueue, err := middle(100, func() error { _, err := r.Enqueue(ctx, noop.With(newPayload(0), jobs.Queue("other"))); return err })
		if err != nil {
			return err
		}

		list, err := middle(20, func() error { _, err := r.List(ctx, jobs.Filter{Limit: 50}); return err })
		if err != nil {
			return err
		}

		fmt.Fprintf(w, "%d\t%.0f\t%s\t%.0f\t%.0f\t%.2f\t%.2f\n", to, megabytes, took.Round(time.Millisecond), ten, hundred, enqueue, list)
		if err := w.Flush(); err != nil {
			return err
		}
	}

	return nil
}

// workSome runs at least n tasks and returns the time per task in microseconds.
func workSome(ctx context.Context, address string, concurrency, n int) (float64, error) {
	ctx, stop := context.WithTimeout(ctx, 5*time.Minute)
	defer stop()

	ran := make(chan struct{}, n)
	q, err := ours("", 0).open(ctx, address, concurrency, func(payload) {
		select {
		case ran <- struct{}{}:
		default:
		}
	})
	if err != nil {
		return 0, err
	}
	defer q.close()

	began := time.Now()
	if err := q.start(ctx); err != nil {
		return 0, err
	}

	for i := range n {
		select {
		case <-ran:
		case <-ctx.Done():
			return 0, fmt.Errorf("%d of %d tasks have run: %w", i, n, context.Cause(ctx))
		}
	}

	took := time.Since(began)
	return float64(took.Microseconds()) / float64(n), q.stop(ctx)
}

// middle returns the median time of n calls, in milliseconds.
func middle(n int, do func() error) (float64, error) {
	var took []time.Duration
	for range n {
		began := time.Now()
		if err := do(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(began))
	}

	slices.Sort(took)
	return float64(took[n/2].Microseconds()) / 1000, nil
}
