package runnertest_test

import (
	"context"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/runnertest"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// TestHourOfTasks enqueues a task each second, or every ten seconds in the
// plain run, for an hour of fake time while Work runs. The test takes only the
// real time that it needs to run these tasks.
func TestHourOfTasks(t *testing.T) {
	pause := testkit.Size(10*time.Second, time.Second)
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		var delays []time.Duration // times from the creation to the start of each task
		r.Register(sendEmail.Handler(func(ctx context.Context, _ email) error {
			task, _ := runner.TaskFromContext(ctx)
			delays = append(delays, time.Since(task.CreatedAt))
			return nil
		}))
		ctx, stop := context.WithCancel(t.Context())
		worked := make(chan error)
		go func() { worked <- r.Work(ctx, runner.WorkOptions{Concurrency: 1}) }()
		go func() {
			ticks := time.NewTicker(pause)
			defer ticks.Stop()
			for {
				select {
				case <-ticks.C:
					runnerkit.Enqueue(t, r, sendEmail.With(email{"ann"}, jobs.MaxAttempts(1)))
				case <-ctx.Done():
					return
				}
			}
		}()
		runnertest.Advance(t, time.Hour+time.Second/2)
		stop()
		testkit.NoError(t, <-worked)
		testkit.Len(t, "runs", delays, int(time.Hour/pause))
		for i, delay := range delays {
			if delay > time.Second/2 {
				t.Errorf("task %d: got a delay of %v, want at most half a second", i+1, delay)
			}
		}
	})
}
