package postgres_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/postgres"
	"example.com/runner/test/testkit/pgkit"
	"example.com/runner/test/testkit/runnerkit"
)

// durable starts a server whose commits survive a power failure, and returns
// the address of a database on it.
func durable(b *testing.B) string {
	b.Helper()
	return pgkit.Start(b, "fsync=on", "shared_buffers=256MB").Address("postgres")
}

// runnerOn opens a database on a server.
func runnerOn(b *testing.B, at string) *runner.Runner {
	b.Helper()
	return runnerkit.OpenAt(b, at, runner.Options{Engine: postgres.Engine(), Dir: b.TempDir()})
}

// BenchmarkDrain measures how fast a worker with 100 slots runs tasks whose
// functions do nothing.
func BenchmarkDrain(b *testing.B) {
	r := runnerOn(b, durable(b))
	r.Register(count.Handler(func(context.Context, int) error { return nil }))
	specs := make([]jobs.Spec, b.N)
	for i := range specs {
		specs[i] = count.With(i)
	}
	if _, err := r.EnqueueSeq(b.Context(), slices.Values(specs)); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	if err := r.Work(b.Context(), runner.WorkOptions{Concurrency: 100, UntilEmpty: true}); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
}

// BenchmarkEnqueue adds tasks one by one from many goroutines at once.
func BenchmarkEnqueue(b *testing.B) {
	r := runnerOn(b, durable(b))
	b.SetParallelism(25)
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, err := r.Enqueue(b.Context(), count.With(1)); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tasks/s")
}

// BenchmarkLatency measures the time from an enqueue by one handle until
// another handle runs the function.
func BenchmarkLatency(b *testing.B) {
	at := durable(b)
	worker, client := runnerOn(b, at), runnerOn(b, at)
	var began atomic.Int64
	ran := make(chan time.Duration)
	worker.Register(count.Handler(func(context.Context, int) error {
		ran <- time.Duration(time.Now().UnixNano() - began.Load())
		return nil
	}))
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error)
	go func() { done <- worker.Work(ctx, runner.WorkOptions{Concurrency: 10}) }()
	times := make([]time.Duration, 0, b.N)
	for range b.N {
		began.Store(time.Now().UnixNano())
		if _, err := client.Enqueue(b.Context(), count.With(1)); err != nil {
			b.Fatal(err)
		}
		times = append(times, <-ran)
	}

	cancel()
	<-done
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "p50-ms")
	b.ReportMetric(float64(times[len(times)*99/100].Microseconds())/1000, "p99-ms")
}
