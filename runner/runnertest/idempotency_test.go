package runnertest_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/runnertest"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// TestRepeatedEnqueuesRunOnce repeats calls of Enqueue with For until
// they succeed, while commits fail, tasks run, workers crash and retention
// deletes tasks. All calls with the same key must cause exactly one run.
func TestRepeatedEnqueuesRunOnce(t *testing.T) {
	t.Parallel()
	for seed := range testkit.Size(5, 20) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
				o := runner.WorkOptions{Concurrency: 1, Keep: time.Minute, KeepFailed: time.Minute, UntilEmpty: true}
				testRepeatedEnqueues(t, r, o, rand.New(rand.NewPCG(1, uint64(seed))))
			})
		})
	}
}

func testRepeatedEnqueues(t *testing.T, r *runner.Runner, o runner.WorkOptions, random *rand.Rand) {
	runs := map[string]int{}
	faulted := false // whether a task of this worker has already caused a fault
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
		if !faulted { // cause at most one fault: after two failed writes in a row the worker gives up, and its tasks run again
			faulted = fault() // may make the write of this attempt's outcome fail
		}
		return nil
	}))
	drain := func() {
		faulted = false
		for err := r.Work(t.Context(), o); err != nil; err = r.Work(t.Context(), o) {
			testkit.ErrorIs(t, err, runnertest.ErrInjected) // the fault kept the worker from starting
		}
	}
	work := func() { // simulates what can happen between two calls of Enqueue: tasks run, a worker crashes or time passes
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
			fault() // the worker may run next, and then this fault makes a commit of the worker fail
		}
		work()
		i := random.IntN(len(waiting))
		to := waiting[i]
		failing := fault()
		task, err := r.Enqueue(t.Context(), sendEmail.With(email{to}, jobs.UniqueWith(to, jobs.UniqueOptions{For: 24 * time.Hour}),
			jobs.MaxLosses(100)))
		if err != nil {
			testkit.ErrorIs(t, err, runnertest.ErrInjected)
			continue
		}
		if task.Kept && task.Job == "" {
			deleted++
		}
		if want := "email.send#" + to; task.UniqueKey != want {
			t.Errorf("got task %d with the key %q, want %q", task.ID, task.UniqueKey, want)
		}
		// half of the calls that succeed in spite of a fault are repeated, as
		// if the caller had lost the result
		if !failing || random.IntN(2) == 0 {
			waiting = append(waiting[:i], waiting[i+1:]...)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute) // longer than a lease, so that all claimed tasks run
	defer cancel()
	faulted, o.UntilEmpty = false, false
	for ctx.Err() == nil {
		if err := r.Work(ctx, o); err != nil {
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

func TestEnqueueSaysThatTaskWasKept(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		r.Register(sendEmail.Handler(func(context.Context, email) error { return nil }))
		spec := sendEmail.With(email{"ann"},
			jobs.UniqueWith("", jobs.UniqueOptions{Args: true, For: time.Hour, States: []jobs.State{jobs.Completed}}))
		first := runnerkit.Enqueue(t, r, spec)
		handle, err := runner.OpenDB(t.Context(), admin.Path(r))
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
		runnertest.RunDue(t, r, runner.WorkOptions{Keep: 10 * time.Minute})
		check("finished", jobs.Completed)
		runnertest.Advance(t, 30*time.Minute)
		runnertest.RunDue(t, r, runner.WorkOptions{Keep: 10 * time.Minute}) // also deletes the finished task
		check("deleted", "")
		runnertest.Advance(t, 30*time.Minute)
		if task := runnerkit.Enqueue(t, r, spec); task.Kept || task.ID == first.ID {
			t.Errorf("after the time: got %+v, want a new task", task)
		}
		if task, err := r.Get(t.Context(), first.ID+1); err != nil || task.Kept {
			t.Errorf("Get: got kept %v and error %v, want false and none", task.Kept, err)
		}
	})
}

// enqueueWays has the ways to add a task.
var enqueueWays = map[string]func(ctx context.Context, r *runner.Runner, handle *sql.DB, spec jobs.Spec) error{
	"EnqueueMany": func(ctx context.Context, r *runner.Runner, _ *sql.DB, spec jobs.Spec) error {
		_, err := r.EnqueueMany(ctx, spec)
		return err
	},
	"EnqueueManyTx": func(ctx context.Context, r *runner.Runner, handle *sql.DB, spec jobs.Spec) error {
		return inTransaction(ctx, handle, func(tx *sql.Tx) error { _, err := r.EnqueueManyTx(ctx, tx, spec); return err })
	},
	"Enqueue": func(ctx context.Context, r *runner.Runner, _ *sql.DB, spec jobs.Spec) error {
		_, err := r.Enqueue(ctx, spec)
		return err
	},
	"EnqueueSeq": func(ctx context.Context, r *runner.Runner, _ *sql.DB, spec jobs.Spec) error {
		_, err := r.EnqueueSeq(ctx, slices.Values([]jobs.Spec{spec}))
		return err
	},
	"EnqueueTx": func(ctx context.Context, r *runner.Runner, handle *sql.DB, spec jobs.Spec) error {
		return inTransaction(ctx, handle, func(tx *sql.Tx) error { _, err := r.EnqueueTx(ctx, tx, spec); return err })
	},
}

func inTransaction(ctx context.Context, handle *sql.DB, do func(tx *sql.Tx) error) error {
	tx, err := handle.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// TestCommitFaultAtAnyPointCausesOneRun makes each commit of a program fail
// once: those of the calls that add a task, and those of the worker that runs
// it. The program repeats its call until the call succeeds, and then once more.
// The task runs exactly once.
func TestCommitFaultAtAnyPointCausesOneRun(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	keys := map[string][]jobs.Option{
		"a key for a day":         {jobs.UniqueWith("welcome", jobs.UniqueOptions{For: day})},
		"a key of the arguments":  {jobs.UniqueWith("", jobs.UniqueOptions{Args: true, For: day})},
		"a key of finished tasks": {jobs.UniqueWith("welcome", jobs.UniqueOptions{States: taskspec.Finished()})},
	}
	for key, options := range keys {
		for way, enqueue := range enqueueWays {
			if way != "Enqueue" && (key != "a key for a day" || testing.Short()) {
				continue // only Enqueue is tested with all keys, because all ways to add a task use the same code for keys
			}
			for _, before := range []bool{true, false} {
				t.Run(fmt.Sprintf("%s with %s, before the commit %v", way, key, before), func(t *testing.T) {
					t.Parallel()
					n := 1
					for failed := true; failed; n++ {
						runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
							handle := runnertest.OpenDB(t, r)
							reached := runnertest.FailCommit(t, r, n, before)
							call := func() error { return enqueue(t.Context(), r, handle, sendEmail.With(email{"ann"}, options...)) }
							testOneRun(t, r, call)
							failed = reached()
						})
					}
					t.Logf("%d commits", n-2)
					// n-2 commits have failed. At least 4 are expected: the
					// call, the start of the worker, the claim and the outcome.
					if n < 6 {
						t.Errorf("got %d commits, want at least 4", n-2)
					}
				})
			}
		}
	}
}

// testOneRun repeats a call that adds a task until the call has succeeded
// twice. After each call it runs a worker. In the end, the task must have run
// exactly once.
func testOneRun(t *testing.T, r *runner.Runner, enqueue func() error) {
	runs := 0
	r.Register(sendEmail.Handler(func(context.Context, email) error { runs++; return nil }))
	for succeeded := 0; succeeded < 2; {
		err := enqueue()
		if err == nil {
			succeeded++
		} else {
			testkit.ErrorIs(t, err, runnertest.ErrInjected)
		}
		if err := r.Work(t.Context(), runner.WorkOptions{Concurrency: 1, UntilEmpty: true}); err != nil {
			testkit.ErrorIs(t, err, runnertest.ErrInjected) // the fault kept the worker from starting
		}
	}
	if runs == 0 { // the commit of the claim succeeded, but returned an error, so the worker did not run the task
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute) // longer than a lease, so that the task runs again
		defer cancel()
		testkit.NoError(t, r.Work(ctx, runner.WorkOptions{Concurrency: 1}))
	}
	testkit.Equal(t, "runs", runs, 1)
}
