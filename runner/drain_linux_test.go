package runner_test

import (
	"context"
	"errors"
	"flag"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// rounds is the number of rounds of a test with random times. The target "make
// storm" sets it to 200.
var rounds = flag.Int("rounds", 10, "of tests that depend on chance")

// TestWorkerThatStopsAtAnyTimeReleasesItsTasks stops a worker at random times.
// Afterwards no process of a command may be alive. Each task must be finished,
// or must be pending as if it had never started. A task may have failed only if
// it must not run twice.
func TestWorkerThatStopsAtAnyTimeReleasesItsTasks(t *testing.T) {
	t.Parallel()
	r := runnerkit.Open(t, runner.Options{Sync: runner.SyncNormal})
	handlers(r)
	var ids []int64
	for round := range *rounds {
		for i := range 6 {
			options := []jobs.Option{func(s *jobs.Spec) { s.KillAfter = 0 }}
			if i == 0 {
				options = append(options, jobs.AtMostOnce())
			}
			spec := jobs.Command(command.Command{Argv: []string{"sh", "-c", `setsid -f sleep 300; sleep 0.0$0`,
				string(rune('0' + rand.IntN(10)))}}, options...)
			ids = append(ids, runnerkit.Enqueue(t, r, spec).ID)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Duration(rand.Int64N(int64(150*time.Millisecond))))
		err := r.Work(ctx, runner.WorkOptions{Grace: -1, Concurrency: 4})
		stop()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) { // Work returns this error if ctx ends before the work begins
			t.Fatalf("got error %v from Work, want none or context.DeadlineExceeded", err)
		}
		for _, id := range ids[6*round:] {
			task := runnerkit.Get(t, r, id)
			if task.WorkerID != "" {
				testkit.Len(t, "processes that are left", commandsOf(task.WorkerID), 0)
			}
			once := task.MaxLosses == 0
			switch {
			case task.State == jobs.Completed && task.Attempt == 1:
			case task.State == jobs.Pending && task.Attempt == 0 && task.Losses == 0:
			case once && task.State == jobs.Failed && task.Reason == jobs.ReasonShutdown:
			default:
				t.Errorf("round %d: task %d is %s (%s) after %d attempts and %d losses; want completed or pending as if never started",
					round, task.ID, task.State, task.Reason, task.Attempt, task.Losses)
			}
		}
	}
	runnerkit.Drain(t, r, runner.WorkOptions{Grace: -1, Concurrency: 4})
	for _, id := range ids {
		if task := runnerkit.Get(t, r, id); task.State != jobs.Completed && task.MaxLosses != 0 {
			t.Errorf("task %d: got state %s, want completed", task.ID, task.State)
		}
	}
}

// TestTaskIsReleasedWithPausesWhileDescriptorsAreMissing checks a task whose
// guardian has no free file descriptor, so its command cannot start. The worker
// gives the task back without counting an attempt. It claims the task again
// after a pause, until the command can start.
func TestTaskIsReleasedWithPausesWhileDescriptorsAreMissing(t *testing.T) {
	t.Parallel()
	r := runnerkit.Open(t, runner.Options{Sync: runner.SyncNormal})
	handlers(r)
	file := filepath.Join(t.TempDir(), "guardian")
	first := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"sh", "-c", `echo $PPID >"$0"`, file}}))
	runnerkit.Work(t, r, runner.WorkOptions{Concurrency: 1})
	until(t, r, func() bool { return runnerkit.Get(t, r, first.ID).State == jobs.Completed })
	guardian := pidsIn(file)[0] // pid of the guardian, which is idle after the first command
	var most unix.Rlimit
	if err := unix.Prlimit(guardian, unix.RLIMIT_NOFILE, nil, &most); err != nil {
		t.Fatal(err)
	}
	few := unix.Rlimit{Cur: 6, Max: most.Max}
	if err := unix.Prlimit(guardian, unix.RLIMIT_NOFILE, &few, nil); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	task := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"true"}}))
	// At generation 7 the worker has claimed and released the task three times.
	until(t, r, func() bool { return runnerkit.Get(t, r, task.ID).GenerationID >= 7 })
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("got three claims in %v, want at least 400ms with the pauses", took)
	}
	if err := unix.Prlimit(guardian, unix.RLIMIT_NOFILE, &most, nil); err != nil {
		t.Fatal(err)
	}
	until(t, r, func() bool { return runnerkit.Get(t, r, task.ID).State == jobs.Completed })
	got := runnerkit.Get(t, r, task.ID)
	testkit.Equal(t, "attempt", got.Attempt, 1)
	testkit.Equal(t, "losses", got.Losses, 0)
}
