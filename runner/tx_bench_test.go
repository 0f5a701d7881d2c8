package runner_test

import (
	"context"
	"database/sql"
	"testing"
	"time"
)

// BenchmarkEnqueueTx adds tasks in transactions of the caller, a hundred tasks
// in each. For comparison, it also adds such rows with a plain INSERT, in
// transactions of the same size. It does not prepare this INSERT, because
// callers usually do not prepare their statements either.
func BenchmarkEnqueueTx(b *testing.B) {
	b.StopTimer()
	r := bench(b, levels[0].sync, 0)
	handle := app(b, r)
	ctx := context.Background()
	spec := noop.With(payload)
	const batch = 100
	transaction := func(add func(tx *sql.Tx) error) time.Duration {
		began := time.Now()
		tx, err := handle.BeginTx(ctx, nil)
		for range batch {
			if err == nil {
				err = add(tx)
			}
		}
		if err == nil {
			err = tx.Commit()
		}
		if err != nil {
			b.Fatal(err)
		}
		return time.Since(began)
	}
	var bare, ours time.Duration
	n := 0
	for ; n < b.N; n += batch {
		bare += transaction(func(tx *sql.Tx) error {
			ms := time.Now().UnixMilli()
			_, err := tx.ExecContext(ctx, bareInsert, "noop", payload, ms, ms, ms)
			return err
		})
		b.StartTimer()
		ours += transaction(func(tx *sql.Tx) error { _, err := r.EnqueueTx(ctx, tx, spec); return err })
		b.StopTimer()
	}
	b.ReportMetric(float64(ours.Nanoseconds())/float64(n), "ns/task")
	b.ReportMetric(float64(bare.Nanoseconds())/float64(n), "bare-ns/task")
	b.ReportMetric(float64(ours)/float64(bare), "times-bare")
}
