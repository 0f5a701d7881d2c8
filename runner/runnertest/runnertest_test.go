package runnertest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/runnertest"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

type email struct{ To string }

var (
	sendEmail = jobs.Define[email]("email.send", jobs.MaxAttempts(3),
		jobs.WithBackoff(jobs.Backoff{Strategy: jobs.BackoffFixed, Delay: time.Minute}))
	count = jobs.DefineResult[string, int]("count")
)

func TestTestControlsTime(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		var sent []string
		r.Register(sendEmail.Handler(func(_ context.Context, e email) error { sent = append(sent, e.To); return nil }))
		runnerkit.Enqueue(t, r, sendEmail.With(email{"later"}, jobs.In(10*time.Minute)))
		runnerkit.Enqueue(t, r, sendEmail.With(email{"low"}))
		runnerkit.Enqueue(t, r, sendEmail.With(email{"high"}, jobs.Priority(9)))
		testkit.Equal(t, "enqueued emails", runnertest.Enqueued(t, r, sendEmail), []email{{"later"}, {"low"}, {"high"}})
		ran := runnertest.RunDue(t, r)
		testkit.Len(t, "runs", ran, 2)
		testkit.Equal(t, "state of the first run", ran[0].State, jobs.Completed)
		runnertest.Advance(t, 10*time.Minute-time.Second)
		testkit.Len(t, "tasks that ran too early", runnertest.RunDue(t, r), 0)
		runnertest.Advance(t, time.Second)
		runnertest.RunDue(t, r)
		if want := []string{"high", "low", "later"}; !slices.Equal(sent, want) {
			t.Errorf("sent %v, want %v", sent, want)
		}
		testkit.Len(t, "tasks that are left", runnertest.Enqueued(t, r, sendEmail), 0)
	})
}

func TestBackgroundWorkerRunsTasksThatBecomeDue(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		attempts := 0
		r.Register(sendEmail.Handler(func(context.Context, email) error {
			if attempts++; attempts < 3 {
				return errors.New("no route")
			}
			return nil
		}))
		ctx, stop := context.WithCancel(t.Context())
		worked := make(chan error)
		go func() { worked <- r.Work(ctx, runner.WorkOptions{Concurrency: 1}) }()
		task := runnerkit.Enqueue(t, r, sendEmail.With(email{"ann"}))
		runnertest.Advance(t, time.Second)
		testkit.Equal(t, "attempts at once", attempts, 1)
		runnertest.Advance(t, 5*time.Minute)
		stop()
		if err := <-worked; err != nil {
			t.Error(err)
		}
		got, err := r.Get(t.Context(), task.ID)
		testkit.NoError(t, err)
		testkit.Equal(t, "state", got.State, jobs.Completed)
		testkit.Equal(t, "attempts", attempts, 3)
	})
}

// recorder is a testing.TB that keeps the messages of Errorf, so that these
// failures do not fail the test.
type recorder struct {
	testing.TB
	messages []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.messages = append(r.messages, fmt.Sprintf(format, args...))
}

func TestPanicFailsTest(t *testing.T) {
	fails := &recorder{TB: t}
	r := runnertest.New(fails)
	r.Register(count.Handler(func(context.Context, string) (int, error) { panic("kaput") }))
	runnerkit.Enqueue(t, r, count.With("x", jobs.MaxAttempts(1)))
	ran := runnertest.RunDue(fails, r)
	testkit.Len(t, "runs", ran, 1)
	testkit.Equal(t, "reason of the first run", ran[0].Reason, jobs.ReasonPanic)
	testkit.Len(t, "failures", fails.messages, 1)
	testkit.Contains(t, fails.messages[0], "task 1 (count) panics: kaput")
}

func TestCrashAfterClaimLosesAttemptAndNotTask(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		calls := 0
		r.Register(sendEmail.Handler(func(context.Context, email) error { calls++; return nil }))
		task := runnerkit.Enqueue(t, r, sendEmail.With(email{"ann"}))
		once := runnerkit.Enqueue(t, r, sendEmail.With(email{"bob"}, jobs.AtMostOnce()))
		testkit.Len(t, "claimed tasks", runnertest.CrashAfterClaim(t, r, 10), 2)
		testkit.Equal(t, "calls", calls, 0)
		got, err := r.Get(t.Context(), task.ID)
		testkit.NoError(t, err)
		testkit.Equal(t, "state", got.State, jobs.Running)
		ran := runnertest.RunDue(t, r)
		testkit.Len(t, "runs", ran, 1)
		testkit.Equal(t, "id of the first run", ran[0].ID, task.ID)
		testkit.Equal(t, "state of the first run", ran[0].State, jobs.Completed)
		testkit.Equal(t, "losses of the first run", ran[0].Losses, 1)
		testkit.Equal(t, "attempt of the first run", ran[0].Attempt, 1)
		testkit.Equal(t, "calls", calls, 1)
		got, err = r.Get(t.Context(), once.ID)
		testkit.NoError(t, err)
		testkit.Equal(t, "state", got.State, jobs.Failed)
		testkit.Equal(t, "reason", got.Reason, jobs.ReasonLost)
	})
}

func TestRunDueReturnsBatchInOrderOfStarts(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		r.Register(sendEmail.BulkHandler(20, func(context.Context, []jobs.BulkTask[email]) error { return nil }))
		for range 20 {
			runnerkit.Enqueue(t, r, sendEmail.With(email{"ann"}))
		}
		for i, task := range runnertest.RunDue(t, r) {
			testkit.Equal(t, "id", task.ID, int64(i+1))
		}
	})
}

func TestRunDueEndsIfTaskComesBackForEver(t *testing.T) {
	for _, again := range []error{jobs.Snooze(0), jobs.RetryIn(0, errors.New("busy"))} {
		runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
			r.Register(sendEmail.Handler(func(context.Context, email) error { return again }))
			runnerkit.Enqueue(t, r, sendEmail.With(email{"ann"}, jobs.MaxAttempts(1_000_000)))
			if n := len(runnertest.RunDue(t, r)); n < 2 || n > 20 {
				t.Errorf("%v: got %d attempts, want about 11", again, n)
			}
		})
	}
}

// TestFinishThatDoesNotLastHidesNoLoss lets FinishTx fail, or rolls its
// transaction back, and takes the task away. The function must be told.
func TestFinishThatDoesNotLastHidesNoLoss(t *testing.T) {
	for _, when := range []string{"before FinishTx", "after it failed", "in a stale transaction", "after a rollback"} {
		runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
			app := runnertest.OpenDB(t, r)
			deferred, err := sql.Open("sqlite", admin.Path(r)) // its transactions begin without the write lock
			testkit.NoError(t, err)
			defer deferred.Close()
			calls := 0
			lose := func(ctx context.Context) { testkit.NoError(t, runnertest.Lose(ctx, r)) }
			r.Register(sendEmail.Handler(func(ctx context.Context, _ email) error {
				if calls++; calls > 1 {
					return nil
				}
				if when == "before FinishTx" {
					lose(ctx)
				}
				handle := app
				if when == "in a stale transaction" {
					handle = deferred
				}
				tx, err := handle.BeginTx(ctx, nil)
				testkit.NoError(t, err)
				if when == "in a stale transaction" {
					testkit.NoError(t, tx.QueryRowContext(ctx, `SELECT count(*) FROM tasks`).Scan(new(int)))
					_, err = app.ExecContext(ctx, `CREATE TABLE written (x)`)
					testkit.NoError(t, err)
				}
				var result any
				if when == "after it failed" {
					result = func() {} // no JSON
				}
				err = runner.FinishTx(ctx, tx, result)
				testkit.Equal(t, "FinishTx succeeded", err == nil, when == "after a rollback")
				_ = tx.Rollback()
				if when != "before FinishTx" {
					lose(ctx)
				}
				began := time.Now()
				select {
				case <-ctx.Done():
					testkit.ErrorIs(t, context.Cause(ctx), jobs.ErrLost)
					testkit.Between(t, "time until told", time.Since(began), 0, 11*time.Second)
				case <-time.After(time.Hour):
					t.Errorf("a loss %s: not told", when)
				}
				return nil
			}))
			runnerkit.Enqueue(t, r, sendEmail.With(email{"ann"}))
			runnertest.RunDue(t, r)
			testkit.Equal(t, "calls", calls, 2)
		})
	}
}

// TestFunctionGoesOnAfterCommitOfFinishTx lets heartbeats find that the
// task is finished while its function still runs.
func TestFunctionGoesOnAfterCommitOfFinishTx(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		app := runnertest.OpenDB(t, r)
		r.Register(sendEmail.Handler(func(ctx context.Context, _ email) error {
			tx, err := app.BeginTx(ctx, nil)
			testkit.NoError(t, err)
			testkit.NoError(t, runner.FinishTx(ctx, tx, "sent"))
			testkit.NoError(t, tx.Commit())
			time.Sleep(10 * time.Minute)
			return ctx.Err()
		}))
		runnerkit.Enqueue(t, r, sendEmail.With(email{"ann"}))
		ran := runnertest.RunDue(t, r)
		testkit.Len(t, "runs", ran, 1)
		testkit.Equal(t, "state", ran[0].State, jobs.Completed)
		testkit.Equal(t, "losses", ran[0].Losses, 0)
	})
}

func TestFunctionThatHasLostItsTaskRunsAgain(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		file := url.URL{Scheme: "file", OmitHost: true, Path: admin.Path(r), RawQuery: "_txlock=immediate"}
		app, err := sql.Open("sqlite", file.String())
		if err != nil {
			t.Fatal(err)
		}
		defer app.Close()
		if _, err := app.ExecContext(t.Context(), `CREATE TABLE sent (addr TEXT) STRICT`); err != nil {
			t.Fatal(err)
		}
		var calls int
		var refused error
		r.Register(sendEmail.Handler(func(ctx context.Context, e email) error {
			calls++
			if calls == 1 {
				if err := runnertest.Lose(ctx, r); err != nil {
					t.Error(err)
				}
				testkit.ErrorIs(t, runnertest.Lose(ctx, r), jobs.ErrLost)
			}
			tx, err := app.BeginTx(ctx, nil)
			if err != nil {
				return err
			}
			defer func() { _ = tx.Rollback() }()
			if _, err := tx.ExecContext(ctx, `INSERT INTO sent VALUES (?)`, e.To); err != nil {
				return err
			}
			if err := runner.FinishTx(ctx, tx, nil); err != nil {
				refused = err
				return err
			}
			return tx.Commit()
		}))
		runnerkit.Enqueue(t, r, sendEmail.With(email{"ann"}))
		ran := runnertest.RunDue(t, r)
		testkit.Equal(t, "calls", calls, 2)
		testkit.ErrorIs(t, refused, jobs.ErrLost)
		testkit.Len(t, "runs", ran, 2)
		testkit.Equal(t, "state of the second run", ran[1].State, jobs.Completed)
		testkit.Equal(t, "losses of the second run", ran[1].Losses, 1)
		var n int
		testkit.NoError(t, app.QueryRowContext(t.Context(), `SELECT count(*) FROM sent`).Scan(&n))
		testkit.Equal(t, "sent emails", n, 1)
		if err := runnertest.Lose(t.Context(), r); err == nil {
			t.Error("got no error from Lose outside of a task, want one")
		}
	})
}

func TestErrorAfterCommitLeavesTask(t *testing.T) {
	r := runnertest.New(t)
	spec := sendEmail.With(email{"ann"}, jobs.Unique("welcome:ann"))
	runnertest.FailBeforeCommit(t, r)
	_, err := r.Enqueue(t.Context(), spec)
	testkit.ErrorIs(t, err, runnertest.ErrInjected)
	testkit.Len(t, "tasks before the commit", runnertest.Enqueued(t, r, sendEmail), 0)
	runnertest.FailAfterCommit(t, r)
	_, err = r.Enqueue(t.Context(), spec)
	testkit.ErrorIs(t, err, runnertest.ErrInjected)
	if task := runnerkit.Enqueue(t, r, spec); task.ID != 1 { // the unique key makes this call return the task of the failed call
		t.Errorf("got task %d, want task 1", task.ID)
	}
	testkit.Len(t, "tasks after the commit", runnertest.Enqueued(t, r, sendEmail), 1)
}

func TestWorkContinuesAfterFailedCommits(t *testing.T) {
	for name, fail := range map[string]func(testing.TB, *runner.Runner){"before": runnertest.FailBeforeCommit,
		"after": runnertest.FailAfterCommit} {
		t.Run(name, func(t *testing.T) {
			runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
				calls := 0
				r.Register(count.Handler(func(context.Context, string) (int, error) {
					calls++
					fail(t, r) // the next commit fails: it records the outcome of this attempt, or a heartbeat
					return calls, nil
				}))
				task := runnerkit.Enqueue(t, r, count.With("x"))
				runnertest.RunDue(t, r)
				n, err := count.Result(r.Get(t.Context(), task.ID))
				testkit.Equal(t, "result of the task", n, 1)
				testkit.NoError(t, err)
				testkit.Equal(t, "calls", calls, 1)
			})
		})
	}
}

func TestRepeatedEnqueueRunsOnce(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		runs := 0
		r.Register(sendEmail.Handler(func(context.Context, email) error { runs++; return nil }))
		spec := sendEmail.With(email{"ann"}, jobs.UniqueWith("welcome:ann", jobs.UniqueOptions{For: 24 * time.Hour}))
		runnertest.FailAfterCommit(t, r)
		_, err := r.Enqueue(t.Context(), spec)
		testkit.ErrorIs(t, err, runnertest.ErrInjected)
		runnertest.RunDue(t, r)
		task := runnerkit.Enqueue(t, r, spec)
		runnertest.RunDue(t, r)
		if runs != 1 || task.ID != 1 || !task.Kept {
			t.Errorf("got %d runs, task %d, kept %v; want 1 run, and task 1 kept", runs, task.ID, task.Kept)
		}
		runnertest.Advance(t, 24*time.Hour)
		if task := runnerkit.Enqueue(t, r, spec); task.ID != 2 || task.Kept {
			t.Errorf("after 24 h: got task %d, kept %v; want a new task 2", task.ID, task.Kept)
		}
	})
}

func TestFlashCollectsWritesAsOnDevice(t *testing.T) {
	for level, want := range map[runner.Sync]jobs.State{runner.SyncFull: jobs.Completed, runner.SyncFlash: jobs.Running} {
		runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
			r.Register(count.Handler(func(context.Context, string) (int, error) { return 1, nil }))
			task, err := r.Enqueue(t.Context(), count.With("a"))
			testkit.NoError(t, err)
			defer runnerkit.Work(t, r, runner.WorkOptions{Concurrency: 2})()
			runnertest.Advance(t, 4*time.Second)
			testkit.Equal(t, fmt.Sprintf("state 4 s after the end with level %d", level), runnerkit.Get(t, r, task.ID).State, want)
			runnertest.Advance(t, 2*time.Second)
			testkit.Equal(t, "state 6 s after the end", runnerkit.Get(t, r, task.ID).State, jobs.Completed)
		}, runner.Options{Sync: level})
	}
}

// TestRunDueWaitsForFullBatch checks how far RunDue advances the clock while
// tasks wait for a full batch. RunDue must stop the clock when the call is
// full, or when the time of BulkWait has passed.
func TestRunDueWaitsForFullBatch(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		var sizes []int
		h := sendEmail.BulkHandler(3, func(_ context.Context, tasks []jobs.BulkTask[email]) error {
			sizes = append(sizes, len(tasks))
			return nil
		})
		h.BulkWait = 10 * time.Minute
		r.Register(h)
		began := time.Now()
		for range 4 {
			if _, err := r.Enqueue(t.Context(), sendEmail.With(email{})); err != nil {
				t.Fatal(err)
			}
		}
		ran, took := len(runnertest.RunDue(t, r)), time.Since(began).Round(time.Second)
		if fmt.Sprint(sizes) != "[3 1]" || ran != 4 || took != 10*time.Minute {
			t.Errorf("got %d tasks in batches of %v after %v, want 4 in batches of 3 and 1 after 10m0s", ran, sizes, took)
		}
	})
}
