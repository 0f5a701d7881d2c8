package ui_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/runnertest"
	"example.com/runner/test/testkit"
)

var slow = jobs.Define[time.Duration]("slow", jobs.Timeout(time.Minute), jobs.MaxAttempts(1))

// withStuckHandler runs a test with a fake clock while a worker runs a task.
// The task has a timeout of one minute, but its handler returns only after an
// hour.
func withStuckHandler(t *testing.T, test func(t *testing.T, r *runner.Runner, task jobs.Task)) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		r.Register(slow.Handler(func(_ context.Context, d time.Duration) error { time.Sleep(d); return nil }))
		task, err := r.Enqueue(t.Context(), slow.With(time.Hour))
		testkit.NoError(t, err)
		ctx, stop := context.WithCancel(t.Context())
		worked := make(chan error)
		go func() { worked <- r.Work(ctx, runner.WorkOptions{Concurrency: 1}) }()
		test(t, r, task)
		runnertest.Advance(t, 2*time.Hour) // now the handler returns
		stop()
		testkit.NoError(t, <-worked)
	})
}

func TestStuckTaskIsProblem(t *testing.T) {
	withStuckHandler(t, func(t *testing.T, r *runner.Runner, task jobs.Task) {
		check := func(want admin.WaitReason, problems []ui.Problem) {
			t.Helper()
			status, err := ui.ReadStatus(t.Context(), r, time.Now(), nil)
			testkit.NoError(t, err)
			testkit.Equal(t, "problems", status.Problems, problems)
			task, err := r.Get(t.Context(), task.ID)
			testkit.NoError(t, err)
			wait, err := admin.Why(t.Context(), r, task)
			testkit.NoError(t, err)
			testkit.Equal(t, "reason", wait.Reason, want)
		}
		runnertest.Advance(t, time.Minute+9*time.Second)
		check("running", []ui.Problem{})
		runnertest.Advance(t, 2*time.Second)
		check("stuck", []ui.Problem{{Code: "stuck",
			Message: fmt.Sprintf("task %d ignores its timeout or a request to stop", task.ID),
			Try:     fmt.Sprintf("runner show %d", task.ID)}})
	})
}

func TestProblemsAreSortedByWhatTheyCost(t *testing.T) {
	counts := map[jobs.State]int{jobs.Pending: 1}
	s := ui.Status{Now: noon, Queues: []admin.QueueStatus{{Name: "a", Counts: counts, Failed: 1}, {Name: "b", Counts: counts}}}
	s.Holds.Pauses = admin.PauseMap{"a": {At: noon}}
	s.Workers = []admin.Worker{{Name: "w", State: "ready", Jobs: []string{"command"}, Queues: []jobs.QueueMax{{Name: "c"}}},
		{Name: "gone", State: "lost", Running: []int64{1}}}
	s.Schedules = []jobs.Schedule{{Name: "s", LastState: jobs.Failed}}
	s.FindProblems()
	var codes []string
	for _, p := range s.Problems {
		codes = append(codes, p.Code)
	}
	want := []string{"schedule_failed", "lost_worker", "failed", "no_queue", "no_queue", "paused"}
	testkit.Equal(t, "codes", codes, want)
}

// TestRunHereIsNoWorker has the worker of a runner run, which takes only its
// own task.
func TestRunHereIsNoWorker(t *testing.T) {
	s := ui.Status{Now: noon, Queues: []admin.QueueStatus{{Name: "a", Counts: map[jobs.State]int{jobs.Pending: 1}}},
		Workers: []admin.Worker{{Name: "run", State: "ready"}}}
	s.FindProblems()
	testkit.Equal(t, "problems", s.Problems, []ui.Problem{{Code: "no_worker", Try: "runner work",
		Message: "no worker runs, and 1 task is unfinished"}})
}
