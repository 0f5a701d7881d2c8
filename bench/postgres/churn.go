package main

import (
	"context"
	"fmt"
	"os"
	"text/tabwriter"
	"time"

	"github.com/jackc/pgx/v5"
)

// churnKeep is how long the method churn keeps completed tasks. It is short, so
// workers delete most of the tasks while churn runs.
const churnKeep = 10 * time.Second

// churn adds and runs tasks until n of them have started, while workers delete
// the completed ones. After each tenth of the tasks it prints a line with the
// times of these tasks and the sizes of the table of tasks. If vacuum does its
// work, the sizes and p99 stay the same from the third line on.
func (r snapshotRun) churn(ctx context.Context, address string, n int) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)

	r.measured = 4 * time.Second
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "\nstarted\trate /s\tp50 ms\tp99 ms\ttasks kept\ttable MB\tindexes MB\tdead rows\t\n")
	err = r.arrive(ctx, address, ours("runner", churnKeep), func(a *arrivals) error {
		for step := 1; step <= 10; step++ {
			got, err := a.count(ctx, n/10)
			if err != nil {
				return err
			}
			size, err := readSize(ctx, conn)
			if err != nil {
				return err
			}
			fmt.Fprintf(w, "%d\t%.0f\t%.1f\t%.1f\t%d\t%.1f\t%.1f\t%d\t\n", step*n/10, got.rate, milliseconds(got.p50),
				milliseconds(got.p99), size.tasks, size.table, size.indexes, size.dead)
		}
		return nil
	})
	if err != nil {
		return err
	}

	return w.Flush()
}

// tableSize is the size of the table of tasks.
type tableSize struct {
	tasks, dead    int64   // rows
	table, indexes float64 // MB
}

func readSize(ctx context.Context, conn *pgx.Conn) (s tableSize, err error) {
	err = conn.QueryRow(ctx, `SELECT (SELECT count(*) FROM runner.tasks), pg_table_size('runner.tasks') / 1e6::float8,
		pg_indexes_size('runner.tasks') / 1e6::float8, n_dead_tup FROM pg_stat_all_tables WHERE relid = 'runner.tasks'::regclass`).
		Scan(&s.tasks, &s.table, &s.indexes, &s.dead)
	return s, err
}
