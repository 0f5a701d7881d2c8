package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/runner/runner"
	"example.com/runner/runner/postgres"
)

// finishedDays is a number of days before the measurement. The ends of the
// completed tasks are spread over these days. finishedStages is the number of
// measurements with retention. During each of them, retention deletes the tasks
// that ended on one of these days.
const (
	finishedDays   = 50
	finishedStages = 3
	day            = 24 * time.Hour
	forever        = -1 // value of keep of besideFinished if no task is to be deleted
)

// fillCompleted inserts the completed tasks $1 to $2 of job $3. The ends of the
// tasks are spread over the time from $4 to $5, in ms.
const fillCompleted = `INSERT INTO runner.tasks (generation_id, job, args, queue, state, priority, run_at, max_attempts, max_losses,
	attempt, worker, started_at, finished_at, created_at, updated_at)
SELECT 3, $3, '{"n":' || i || ',"to":"someone@example.com","subject":"a payload of about one hundred bytes, as tasks have"}', 'default',
	'completed', 5, at, 1, 3, 1, 1, at, at, at, at
FROM generate_series($1::bigint, $2::bigint) AS i,
	LATERAL (SELECT $4::bigint + (($5::bigint - $4::bigint) * (i - $1) / ($2 - $1 + 1))::bigint AS at) AS ended`

// finished measures the rate of tasks that arrive one by one. It measures an
// empty database, then a database with n completed tasks. Then it measures
// several times while retention deletes the completed tasks of one day. After
// each measurement it prints the sizes of the table of tasks. If all rates are
// equal, the cost of a claim doesn't depend on the number of completed tasks.
// If retention deletes as many tasks as arrive and the sizes don't grow, the
// space of deleted tasks is used again.
func (r snapshotRun) finished(ctx context.Context, address string, n int) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)

	r.measured = 20 * time.Second
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\nmeasured\ts\trate /s\tp50 ms\tp99 ms\tdeleted /s\ttasks\ttable MB\tindexes MB\tdead rows\t\n")
	measure := func(name string, keep time.Duration) error {
		line, err := r.besideFinished(ctx, conn, address, n, keep)
		if err != nil {
			return err
		}
		log.Print(name, line)
		_, err = fmt.Fprint(w, name, line)
		return err
	}
	if err := createSchema(ctx, address); err != nil {
		return err
	}
	if err := measure("empty database", forever); err != nil {
		return err
	}

	began := time.Now()
	if err := fillFinished(ctx, conn, began, n); err != nil {
		return err
	}

	log.Printf("filled and vacuumed in %s", time.Since(began).Round(time.Second))
	if err := measure(fmt.Sprintf("%d completed tasks", n), forever); err != nil {
		return err
	}

	for i := range finishedStages {
		if err := measure(fmt.Sprintf("day %d is deleted", i+1), time.Duration(finishedDays-1-i)*day+time.Since(began)); err != nil {
			return err
		}
	}

	return w.Flush()
}

// besideFinished measures tasks that arrive one by one, and returns the results
// as the cells of a table row. The measurement lasts at least for the time
// r.measured. It also lasts until the workers have deleted the old tasks: the
// tasks that, at its start, had ended longer ago than keep. It doesn't wait for
// tasks that became old in the last minute before its start, because the
// workers may find such tasks later. If keep is the constant "forever", the
// workers delete nothing.
func (r snapshotRun) besideFinished(ctx context.Context, conn *pgx.Conn, address string, n int, keep time.Duration) (string, error) {
	var got phaseResult
	var took time.Duration
	if err := r.arrive(ctx, address, ours("runner", keep), func(a *arrivals) (err error) {
		a.begin()
		began := time.Now()
		for old := true; old || time.Since(began) < r.measured; {
			select {
			case <-time.After(100 * time.Millisecond):
			case <-ctx.Done():
				return context.Cause(ctx)
			}

			if old = keep != forever; !old {
				continue
			}
			if err := conn.QueryRow(ctx, `SELECT coalesce((SELECT min(finished_at) FROM runner.tasks
				WHERE finished_at IS NOT NULL) < $1, false)`, began.Add(-keep-time.Minute).UnixMilli()).Scan(&old); err != nil {
				return err
			}
		}

		took = time.Since(began)
		got, err = a.end(took)
		return err
	}); err != nil {
		return "", err
	}

	size, err := readSize(ctx, conn)
	if err != nil {
		return "", err
	}

	deleted := 0.0
	if keep != forever {
		deleted = float64(n) / finishedDays / took.Seconds()
	}

	return fmt.Sprintf("\t%.0f\t%.0f\t%.1f\t%.1f\t%.0f\t%d\t%.0f\t%.0f\t%d\t\n", took.Seconds(), got.rate, milliseconds(got.p50),
		milliseconds(got.p99), deleted, size.tasks, size.table, size.indexes, size.dead), nil
}

// fillFinished inserts n completed tasks. Their ends are spread over the last
// 50 days (finishedDays) before the time now.
func fillFinished(ctx context.Context, conn *pgx.Conn, now time.Time, n int) error {
	const part = 500_000
	oldest, span := now.Add(-finishedDays*day).UnixMilli(), (finishedDays * day).Milliseconds()
	at := func(i int) int64 { return oldest + span*int64(i)/int64(n) }
	for from := 0; from < n; from += part {
		to := min(n, from+part)
		if _, err := conn.Exec(ctx, fillCompleted, from+1, to, "noop", at(from), at(to)); err != nil {
			return err
		}
	}

	_, err := conn.Exec(ctx, "VACUUM (ANALYZE) runner.tasks")
	return err
}

// createSchema creates runner's tables in an empty database.
func createSchema(ctx context.Context, address string) error {
	r, err := runner.Open(ctx, address, runner.Options{Engine: postgres.Engine()})
	if err != nil {
		return err
	}
	return r.Close()
}
