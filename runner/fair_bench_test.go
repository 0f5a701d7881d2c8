//go:build unix

package runner_test

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// flood is a job that runs for a millisecond and then enqueues another task of
// the same job. So the number of waiting flood tasks stays the same.
var flood = jobs.Define[string]("flood", jobs.MaxAttempts(1), jobs.Priority(9))

// BenchmarkFair enqueues a single task every 5 ms and measures how long these
// tasks wait until a worker with ten slots starts them. In the first case there
// are no other tasks. In the second case, the worker also runs tasks of the job
// flood in another queue. In the third case, the flood tasks are in the same
// queue and have a higher priority: a single task starts only when too few
// flood tasks are pending to fill the slots. The benchmark prints p50 and p99
// of the wait, and the share of the flood tasks in all starts.
func BenchmarkFair(b *testing.B) {
	for _, c := range []struct {
		name  string
		queue string // queue of the flood tasks; empty if there are none
	}{{"alone", ""}, {"beside_another_queue", "flood"}, {"below_a_flood", "default"}} {
		b.Run(c.name, func(b *testing.B) {
			b.StopTimer()
			r, err := runner.Open(b.Context(), filepath.Join(b.TempDir(), "fair.db"),
				runner.Options{Sync: runner.SyncNormal})
			if err != nil {
				b.Fatal(err)
			}
			defer r.Close()
			ctx, stop := context.WithCancel(b.Context())
			defer stop()
			var mu sync.Mutex
			var waits []time.Duration
			var flooded atomic.Int64
			var over atomic.Bool
			r.Register(flood.Handler(func(ctx context.Context, queue string) error {
				flooded.Add(1)
				time.Sleep(time.Millisecond)
				if over.Load() {
					return nil
				}
				_, err := r.Enqueue(ctx, flood.With(queue, jobs.Queue(queue)))
				return err
			}), stamp.Handler(func(_ context.Context, at int64) error {
				mu.Lock()
				defer mu.Unlock()
				if waits = append(waits, time.Duration(time.Now().UnixNano()-at)); len(waits) == b.N {
					stop()
				}
				return nil
			}))
			if c.queue != "" {
				if _, err := r.EnqueueSeq(ctx, repeat(flood.With(c.queue, jobs.Queue(c.queue)), 100)); err != nil {
					b.Fatal(err)
				}
			}
			done := make(chan error, 1)
			go func() { done <- r.Work(ctx, runner.WorkOptions{Concurrency: 10}) }()
			b.StartTimer()
			for range b.N {
				time.Sleep(5 * time.Millisecond)
				if _, err := r.Enqueue(b.Context(), stamp.With(time.Now().UnixNano())); err != nil {
					b.Fatal(err)
				}
			}
			over.Store(true)
			if err := <-done; err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			percentiles(b, waits, "wait_")
			b.ReportMetric(float64(flooded.Load())/float64(flooded.Load()+int64(b.N)), "flood_share")
		})
	}
}
