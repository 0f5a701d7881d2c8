package runner_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
)

// BenchmarkBatch drains a queue with 10 slots, once with a handler for single
// tasks and once with a bulk handler. The handlers do nothing, or they wait
// for 1 ms in each call, like a request to a server.
func BenchmarkBatch(b *testing.B) {
	for _, wait := range []time.Duration{0, time.Millisecond} {
		for _, size := range []int{0, 10, 100} {
			name := "single"
			if size > 0 {
				name = fmt.Sprint("n=", size)
			}
			b.Run(fmt.Sprintf("wait=%v/%s", wait, name), func(b *testing.B) {
				b.StopTimer()
				r := bench(b, levels[0].sync, b.N)
				var ran, calls atomic.Int64
				call := func(n int) error {
					time.Sleep(wait)
					ran.Add(int64(n))
					calls.Add(1)
					return nil
				}
				h := noop.Handler(func(context.Context, string) error { return call(1) })
				if size > 0 {
					h = noop.BulkHandler(size, func(_ context.Context, tasks []jobs.BulkTask[string]) error { return call(len(tasks)) })
				}
				r.Register(h)
				b.StartTimer()
				began := time.Now()
				testkit.NoError(b, r.Work(b.Context(), runner.WorkOptions{Concurrency: 10, UntilEmpty: true}))
				b.StopTimer()
				testkit.Equal(b, "executed tasks", ran.Load(), int64(b.N))
				b.ReportMetric(float64(b.N)/time.Since(began).Seconds(), "tasks/s")
				b.ReportMetric(float64(b.N)/float64(calls.Load()), "tasks/call")
			})
		}
	}
}
