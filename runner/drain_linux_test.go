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
	"example.com/runner/runner"
)

// rounds is the number of rounds of a test that depends on chance. make storm uses 200.
var rounds = flag.Int("rounds", 10, "of tests that depend on chance")

// TestAWorkerThatIsStoppedAtAnyMomentGivesBackWhatItCutOff stops a worker at random times. The worker leaves no process of its commands.
// Each task has ended or is pending as if it had never started. Only a task that must not run twice may have failed.
func TestAWorkerThatIsStoppedAtAnyMomentGivesBackWhatItCutOff(t *testing.T) {
	t.Parallel()
	r := open(t, runner.Options{Sync: runner.Normal, Grace: -1, Concurrency: 4})
	handlers(r)
	var ids []int64
	for round := range *rounds {
		for i := range 6 {
			options := []jobs.Option{jobs.KillAfter(0)}
			if i == 0 {
				options = append(options, jobs.AtMostOnce())
			}
			spec := jobs.Command{Argv: []string{"sh", "-c", `setsid -f sleep 300; sleep 0.0$0`,
				string(rune('0' + rand.IntN(10)))}}.With(options...)
			ids = append(ids, enqueue(t, r, spec).ID)
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Duration(rand.Int64N(int64(150*time.Millisecond))))
		err := r.Work(ctx)
		stop()
		if err != nil && !errors.Is(err, context.DeadlineExceeded) { // the context ended before the work began
			t.Fatalf("got %v; want not (err != nil && !Is(err, context.DeadlineExceeded))", err)
		}
		for _, id := range ids[6*round:] {
			task := get(t, r, id)
			if task.WorkerID != "" {
				if left := commandsOf(task.WorkerID); len(left) > 0 {
					t.Errorf("round %d: processes %v are left", round, left)
				}
			}
			once := task.MaxLosses == 0
			switch {
			case task.State == jobs.Completed && task.Attempt == 1:
			case task.State == jobs.Pending && task.Attempt == 0 && task.Losses == 0:
			case once && task.State == jobs.Failed && task.Reason == jobs.ReasonShutdown:
			default:
				t.Errorf("round %d: %+v", round, task)
			}
		}
	}
	drain(t, r)
	for _, id := range ids {
		if task := get(t, r, id); task.State != jobs.Completed && task.MaxLosses != 0 {
			t.Errorf("got %+v, want not (State != Completed && MaxLosses != 0)", task)
		}
	}
}

// TestWantOfDescriptorsGivesBackWithoutHurry checks a task that cannot start because a guardian has no free descriptors. The worker
// returns the task to the queue without counting an attempt, with pauses, until the task can start.
func TestWantOfDescriptorsGivesBackWithoutHurry(t *testing.T) {
	t.Parallel()
	r := open(t, runner.Options{Sync: runner.Normal, Concurrency: 1})
	handlers(r)
	file := filepath.Join(t.TempDir(), "guardian")
	first := enqueue(t, r, jobs.Command{Argv: []string{"sh", "-c", `echo $PPID >"$0"`, file}}.With())
	work(t, r)
	until(t, r, func() bool { return get(t, r, first.ID).State == jobs.Completed })
	guardian := familyOf(file)[0] // idle by now
	var most unix.Rlimit
	if err := unix.Prlimit(guardian, unix.RLIMIT_NOFILE, nil, &most); err != nil {
		t.Fatal(err)
	}
	few := unix.Rlimit{Cur: 6, Max: most.Max}
	if err := unix.Prlimit(guardian, unix.RLIMIT_NOFILE, &few, nil); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	task := enqueue(t, r, jobs.Command{Argv: []string{"true"}}.With())
	until(t, r, func() bool { return get(t, r, task.ID).GenerationID >= 7 }) // the worker has claimed and returned the task three times
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("three times in %v", took)
	}
	if err := unix.Prlimit(guardian, unix.RLIMIT_NOFILE, &most, nil); err != nil {
		t.Fatal(err)
	}
	until(t, r, func() bool { return get(t, r, task.ID).State == jobs.Completed })
	if got := get(t, r, task.ID); got.Attempt != 1 || got.Losses != 0 {
		t.Errorf("got %+v; want Attempt = 1, Losses = 0", got)
	}
}
