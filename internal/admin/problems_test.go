package admin_test

import (
	"context"
	"testing"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/testkit"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/runnertest"
)

var slow = jobs.Define[time.Duration]("slow", jobs.Timeout(time.Minute), jobs.MaxAttempts(1))

// withStuckHandler runs a test with a fake clock while a worker runs a task. The task has a timeout of one minute, but its handler returns
// only after an hour.
func withStuckHandler(t *testing.T, options runner.Options, test func(t *testing.T, r *runner.Runner, task jobs.Task)) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		r.Register(slow.Handler(func(_ context.Context, d time.Duration) error { time.Sleep(d); return nil }))
		task, err := r.Enqueue(t.Context(), slow.With(time.Hour))
		testkit.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		worked := make(chan error)
		go func() { worked <- r.Work(ctx) }()
		test(t, r, task)
		runnertest.Advance(t, 2*time.Hour) // now the handler returns
		stop()
		testkit.NoError(t, <-worked)
	}, options)
}

// TestAStuckTaskIsAProblem checks that a task counts as stuck 10 s after its timeout. The worker's own option StuckAfter does not matter,
// because other processes do not know it.
func TestAStuckTaskIsAProblem(t *testing.T) {
	for _, after := range []time.Duration{-1, time.Second, time.Minute} {
		withStuckHandler(t, runner.Options{StuckAfter: after}, func(t *testing.T, r *runner.Runner, task jobs.Task) {
			check := func(want string, problems []admin.Problem) {
				t.Helper()
				workers, err := r.Workers(t.Context())
				testkit.NoError(t, err)
				found, err := admin.MoreProblems(t.Context(), r, workers, time.Now())
				testkit.NoError(t, err)
				testkit.Equal(t, "problems", found, problems)
				task, err := r.Get(t.Context(), task.ID)
				testkit.NoError(t, err)
				wait, err := r.Why(t.Context(), task)
				testkit.NoError(t, err)
				testkit.Equal(t, "reason", wait.Reason, want)
			}
			runnertest.Advance(t, time.Minute+9*time.Second)
			check("running", nil)
			runnertest.Advance(t, 2*time.Second)
			check("stuck", []admin.Problem{{Code: "stuck", Task: task.ID, Tasks: 1}})
		})
	}
}

func TestProblemsAreSortedByWhatTheyCost(t *testing.T) {
	sorted := []string{"no_worker", "schedule_failed", "lost_worker", "failed", "no_queue", "paused", "paused"}
	list := []admin.Problem{{Code: "paused"}, {Code: "no_queue"}, {Code: "failed"}, {Code: "lost_worker"}, {Code: "paused", Tasks: 1},
		{Code: "schedule_failed"}, {Code: "no_worker"}}
	admin.SortProblems(list)
	var codes []string
	for _, p := range list {
		codes = append(codes, p.Code)
	}
	testkit.Equal(t, "codes", codes, sorted)
	testkit.Equal(t, "waiting tasks of the first pause", list[5].Tasks, 1)
}
