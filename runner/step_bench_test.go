package runner_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// BenchmarkStep runs tasks with a hundred steps each; the steps do nothing. For
// comparison it first runs a loop without package runner, which commits a row
// for each step. The metric "again" is the time of a step whose result an
// earlier attempt has already stored. An attempt reads the results of all steps
// of its task with one query.
func BenchmarkStep(b *testing.B) {
	for _, level := range levels {
		b.Run(level.name, func(b *testing.B) {
			const each = 100
			b.StopTimer()
			n := (b.N + each - 1) / each
			d := openBare(b, admin.Path(bench(b, level.sync, 0)), level.pragma)
			began := time.Now()
			for i := range n * each {
				d.exec("BEGIN IMMEDIATE")
				d.exec(bareStep, i, time.Now().UnixMilli())
				d.exec("COMMIT")
			}
			limit := time.Since(began)

			r := bench(b, level.sync, 0)
			var first, again time.Duration
			task := jobs.Define[any]("steps", jobs.MaxAttempts(2), jobs.WithBackoff(jobs.Backoff{}))
			r.Register(task.Handler(func(ctx context.Context, _ any) error {
				began := time.Now()
				for i := range each {
					if _, err := runner.Step(ctx, fmt.Sprint(i), func(context.Context) (int, error) { return i, nil }); err != nil {
						return err
					}
				}
				if t, _ := runner.TaskFromContext(ctx); t.Attempt == 1 {
					first += time.Since(began)
					return context.Canceled // this error causes another attempt, which finds the results of all steps stored
				}
				again += time.Since(began)
				return nil
			}))
			if _, err := r.EnqueueSeq(b.Context(), repeat(task.With(nil), n)); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
			if err := r.Work(b.Context(), runner.WorkOptions{Concurrency: 1, UntilEmpty: true}); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			b.ReportMetric(float64(first.Nanoseconds())/float64(n*each), "ns/step")
			b.ReportMetric(float64(again.Nanoseconds())/float64(n*each), "again-ns/step")
			b.ReportMetric(float64(first)/float64(limit), "times-bare")
		})
	}
}

const bareStep = `INSERT INTO steps (task_id, generation_id, seq, name, value, at) VALUES (1, 1, ? + 1, 'step', '1', ?)`

// BenchmarkAwait measures the time from the end of a function to the return of
// an Await that was already waiting. Await is called on the Runner of the
// worker, or on another Runner, as another process would do.
func BenchmarkAwait(b *testing.B) {
	ended := jobs.DefineResult[any, int64]("ended", jobs.MaxAttempts(1))
	for _, level := range levels {
		for _, same := range []bool{true, false} {
			b.Run(fmt.Sprintf("%s/%s", level.name, map[bool]string{true: "same", false: "other"}[same]), func(b *testing.B) {
				b.StopTimer()
				r := bench(b, level.sync, 0)
				r.Register(ended.Handler(func(context.Context, any) (int64, error) {
					time.Sleep(2 * time.Millisecond) // Await needs some time to begin its wait
					return time.Now().UnixNano(), nil
				}))
				waiter := r
				if !same {
					var err error
					if waiter, err = runner.Open(b.Context(), admin.Path(r), runner.Options{MustExist: true}); err != nil {
						b.Fatal(err)
					}
					defer waiter.Close()
				}
				ctx, stop := context.WithCancel(b.Context())
				done := make(chan error, 1)
				go func() { done <- r.Work(ctx, runner.WorkOptions{Concurrency: 1}) }()
				var times []time.Duration
				b.StartTimer()
				for range b.N {
					task, err := r.Enqueue(ctx, ended.With(nil))
					if err != nil {
						b.Fatal(err)
					}
					at, err := ended.Result(waiter.Await(ctx, task.ID))
					if err != nil {
						b.Fatal(err)
					}
					times = append(times, time.Duration(time.Now().UnixNano()-at))
				}
				b.StopTimer()
				stop()
				if err := <-done; err != nil {
					b.Fatal(err)
				}
				percentiles(b, times, "")
			})
		}
	}
}
