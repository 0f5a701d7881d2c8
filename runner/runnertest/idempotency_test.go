package runnertest_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"example.com/runner/internal/testkit"
	"example.com/runner/internal/testkit/runnerkit"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/runnertest"
)

// TestRepeatedEnqueuesRunOnce repeats calls of Enqueue with UniqueFor until they succeed, while commits fail, tasks run, workers crash and
// retention deletes tasks. Each key runs exactly once.
func TestRepeatedEnqueuesRunOnce(t *testing.T) {
	t.Parallel()
	seeds := 20
	if testing.Short() {
		seeds = 5
	}
	for seed := range seeds {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
				testRepeatedEnqueues(t, r, rand.New(rand.NewPCG(1, uint64(seed))))
			}, runner.Options{Keep: time.Minute, KeepFailed: time.Minute})
		})
	}
}

func testRepeatedEnqueues(t *testing.T, r *runner.Runner, random *rand.Rand) {
	runs := map[string]int{}
	faulted := false // whether a function has made a write of this worker fail
	fault := func() bool {
		switch random.IntN(3) {
		case 0:
			runnertest.FailBeforeCommit(t, r)
		case 1:
			runnertest.FailAfterCommit(t, r)
		default:
			return false
		}
		return true
	}
	r.Register(sendEmail.Handler(func(_ context.Context, e email) error {
		runs[e.To]++
		if !faulted { // after two failed writes in a row a worker gives up, and the tasks whose ends it has not written run again
			faulted = fault() // of the write that ends the attempt
		}
		return nil
	}))
	drain := func() {
		faulted = false
		for err := r.WorkUntilEmpty(t.Context()); err != nil; err = r.WorkUntilEmpty(t.Context()) {
			testkit.ErrorIs(t, err, runnertest.ErrInjected) // the worker could not begin
		}
	}
	work := func() { // what happens between two calls
		switch random.IntN(6) {
		case 0, 1:
			drain()
		case 2:
			runnertest.CrashAfterClaim(t, r, 1)
		case 3:
			runnertest.Advance(t, time.Duration(random.IntN(10))*time.Minute)
			drain() // also deletes old tasks
		}
	}
	waiting, deleted := []string{"a", "b", "c", "d", "e", "f"}, 0
	for len(waiting) > 0 {
		if random.IntN(4) == 0 {
			fault() // also of the writes of the worker
		}
		work()
		i := random.IntN(len(waiting))
		to := waiting[i]
		failing := fault()
		task, err := r.Enqueue(t.Context(), sendEmail.With(email{to}, jobs.Unique(to), jobs.UniqueFor(24*time.Hour),
			jobs.MaxLosses(100)))
		if err != nil {
			testkit.ErrorIs(t, err, runnertest.ErrInjected)
			continue
		}
		if task.Kept && task.Job == "" {
			deleted++
		}
		if task.UniqueKey != to {
			t.Errorf("got task %+v, want one with the key %q", task, to)
		}
		if !failing || random.IntN(2) == 0 { // some callers lose the result, too, and call again
			waiting = append(waiting[:i], waiting[i+1:]...)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // longer than the lease of a claim whose result was lost
	defer cancel()
	faulted = false
	for ctx.Err() == nil {
		if err := r.Work(ctx); err != nil {
			testkit.ErrorIs(t, err, runnertest.ErrInjected)
		}
	}
	for _, to := range []string{"a", "b", "c", "d", "e", "f"} {
		if runs[to] != 1 {
			t.Errorf("key %q: got %d runs, want 1", to, runs[to])
		}
	}
	t.Logf("%d calls returned a task that retention had deleted", deleted)
}

func TestEnqueueSaysThatATaskWasKept(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		r.Register(sendEmail.Handler(func(context.Context, email) error { return nil }))
		spec := sendEmail.With(email{"ann"}, jobs.UniqueArgs(), jobs.UniqueFor(time.Hour), jobs.UniqueStates(jobs.Completed))
		first := runnerkit.Enqueue(t, r, spec)
		handle, err := runner.OpenDB(t.Context(), r.Path())
		testkit.NoError(t, err)
		defer handle.Close()
		enqueueTx := func() jobs.Task {
			t.Helper()
			tx, err := handle.BeginTx(t.Context(), nil)
			testkit.NoError(t, err)
			task, err := r.EnqueueTx(t.Context(), tx, spec)
			testkit.NoError(t, err)
			testkit.NoError(t, tx.Commit())
			return task
		}
		check := func(when string, want jobs.State) {
			t.Helper()
			for how, task := range map[string]jobs.Task{"Enqueue": runnerkit.Enqueue(t, r, spec), "EnqueueTx": enqueueTx()} {
				if !task.Kept || task.ID != first.ID || task.State != want || task.UniqueKey != first.UniqueKey {
					t.Errorf("%s, %s: got %+v, want task %d kept, in state %q and with the key %q", when, how, task, first.ID, want,
						first.UniqueKey)
				}
			}
		}
		if first.Kept || first.UniqueKey == "" {
			t.Errorf("got %+v, want a new task with a key", first)
		}
		check("unfinished", jobs.Pending)
		runnertest.Drain(t, r)
		check("finished", jobs.Completed)
		runnertest.Advance(t, 30*time.Minute)
		runnertest.Drain(t, r) // deletes the task
		check("deleted", "")
		runnertest.Advance(t, 30*time.Minute)
		if task := runnerkit.Enqueue(t, r, spec); task.Kept || task.ID == first.ID {
			t.Errorf("after the time: got %+v, want a new task", task)
		}
		if task, err := r.Get(t.Context(), first.ID+1); err != nil || task.Kept {
			t.Errorf("Get: got kept %v and error %v, want false and none", task.Kept, err)
		}
	}, runner.Options{Keep: 10 * time.Minute})
}
