package runnertest_test

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/runnertest"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// openSent opens a handle of the program with a table of sent emails.
func openSent(t *testing.T, r *runner.Runner) *sql.DB {
	t.Helper()
	app := runnertest.OpenDB(t, r)
	_, err := app.ExecContext(t.Context(), `CREATE TABLE sent (addr TEXT) STRICT`)
	testkit.NoError(t, err)
	return app
}

// sentEmails returns the number of rows in the table "sent", which openSent has
// created.
func sentEmails(t *testing.T, app *sql.DB) (n int) {
	t.Helper()
	testkit.NoError(t, app.QueryRowContext(t.Context(), `SELECT count(*) FROM sent`).Scan(&n))
	return n
}

// sendTx inserts a row into the table "sent", calls end with the same
// transaction, and commits.
func sendTx(ctx context.Context, app *sql.DB, addr string, end func(*sql.Tx) error) error {
	tx, err := app.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, `INSERT INTO sent VALUES (?)`, addr); err != nil {
		return err
	}
	if err := end(tx); err != nil {
		return err
	}
	return tx.Commit()
}

func TestTaskRunsAgainAfterCrashInsideItsFunction(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		app := openSent(t, r)
		var steps, calls, returns int
		r.Register(sendEmail.Handler(func(ctx context.Context, e email) error {
			calls++
			_, err := runner.Step(ctx, "prepare", func(context.Context) (int, error) { steps++; return 0, nil })
			if err != nil {
				return err
			}
			err = sendTx(ctx, app, e.To, func(tx *sql.Tx) error {
				if calls == 1 {
					runnertest.Crash(ctx, r)
				}
				return runner.FinishTx(ctx, tx, nil)
			})
			returns++
			return err
		}))
		runnerkit.Enqueue(t, r, sendEmail.With(email{"ann"}))
		ran := runnertest.RunDue(t, r)
		testkit.Equal(t, "calls, returns, steps and rows", []int{calls, returns, steps, sentEmails(t, app)}, []int{2, 1, 1, 1})
		testkit.Len(t, "attempts", ran, 2)
		testkit.Equal(t, "state", ran[0].State, jobs.Completed)
		testkit.Equal(t, "losses", ran[0].Losses, 1)
		testkit.Equal(t, "attempt", ran[0].Attempt, 1)
	})
}

func TestCrashInsideAtMostOnceFunctionFailsTask(t *testing.T) {
	r := runnertest.New(t)
	r.Register(sendEmail.Handler(func(ctx context.Context, _ email) error { runnertest.Crash(ctx, r); return nil }))
	runnerkit.Enqueue(t, r, sendEmail.With(email{"ann"}, jobs.AtMostOnce()))
	ran := runnertest.RunDue(t, r)
	testkit.Len(t, "attempts", ran, 1)
	testkit.Equal(t, "state", ran[0].State, jobs.Failed)
	testkit.Equal(t, "reason", ran[0].Reason, jobs.ReasonLost)
}

func TestCrashInsideBatchLosesAllItsTasks(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		calls := 0
		r.Register(sendEmail.BulkHandler(10, func(_ context.Context, tasks []jobs.BulkTask[email]) error {
			if calls++; calls == 1 {
				runnertest.Crash(tasks[0].Context, r)
			}
			return nil
		}))
		for i := range 3 {
			runnerkit.Enqueue(t, r, sendEmail.With(email{fmt.Sprint(i)}))
		}
		ran := runnertest.RunDue(t, r)
		testkit.Len(t, "attempts", ran, 6)
		for _, task := range ran {
			testkit.Equal(t, fmt.Sprint("state of task ", task.ID), task.State, jobs.Completed)
			testkit.Equal(t, fmt.Sprint("losses of task ", task.ID), task.Losses, 1)
		}
	})
}

func TestCrashOutsideOfFunctionPanics(t *testing.T) {
	r := runnertest.New(t)
	defer func() {
		if got := fmt.Sprint(recover()); got == "<nil>" {
			t.Error("got no panic, want one")
		}
	}()
	runnertest.Crash(t.Context(), r)
}

func TestCommitOfProgramFails(t *testing.T) {
	for name, c := range map[string]struct {
		fail func(testing.TB, *runner.Runner)
		rows int
	}{"before": {runnertest.FailBeforeCommit, 0}, "after": {runnertest.FailAfterCommit, 1}} {
		t.Run(name, func(t *testing.T) {
			r := runnertest.New(t)
			app := openSent(t, r)
			c.fail(t, r)
			readOnly, err := app.BeginTx(t.Context(), &sql.TxOptions{ReadOnly: true})
			testkit.NoError(t, err)
			testkit.NoError(t, readOnly.Commit()) // a commit that writes nothing does not use up the injected fault
			enqueue := func() error {
				return sendTx(t.Context(), app, "ann", func(tx *sql.Tx) error {
					_, err := r.EnqueueTx(t.Context(), tx, sendEmail.With(email{"ann"}))
					return err
				})
			}
			testkit.ErrorIs(t, enqueue(), runnertest.ErrInjected)
			testkit.Len(t, "tasks", runnertest.Enqueued(t, r, sendEmail), c.rows)
			testkit.Equal(t, "rows", sentEmails(t, app), c.rows)
			testkit.NoError(t, enqueue()) // succeeds, because only one commit was to fail
			testkit.Len(t, "tasks after the second call", runnertest.Enqueued(t, r, sendEmail), c.rows+1)
			testkit.Equal(t, "rows after the second call", sentEmails(t, app), c.rows+1)
		})
	}
}

func TestCommitOfFinishTxFails(t *testing.T) {
	for name, c := range map[string]struct {
		fail  func(testing.TB, *runner.Runner)
		calls int
	}{"before": {runnertest.FailBeforeCommit, 2}, "after": {runnertest.FailAfterCommit, 1}} {
		t.Run(name, func(t *testing.T) {
			runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
				app := openSent(t, r)
				calls := 0
				r.Register(sendEmail.Handler(func(ctx context.Context, e email) error {
					calls++
					return sendTx(ctx, app, e.To, func(tx *sql.Tx) error {
						if calls == 1 {
							c.fail(t, r)
						}
						return runner.FinishTx(ctx, tx, nil)
					})
				}))
				task := runnerkit.Enqueue(t, r, sendEmail.With(email{"ann"}))
				runnertest.RunDue(t, r)
				runnertest.Advance(t, 2*time.Minute)
				runnertest.RunDue(t, r)
				testkit.Equal(t, "calls", calls, c.calls)
				testkit.Equal(t, "state", runnerkit.Get(t, r, task.ID).State, jobs.Completed)
				testkit.Equal(t, "rows", sentEmails(t, app), 1)
			})
		})
	}
}

func TestFaultsIgnoreEndOfContext(t *testing.T) {
	for name, fault := range map[string]func(context.Context, *runner.Runner) error{
		"Crash": func(ctx context.Context, r *runner.Runner) error { runnertest.Crash(ctx, r); return nil },
		"Lose":  runnertest.Lose,
	} {
		runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
			calls := 0
			r.Register(sendEmail.Handler(func(ctx context.Context, _ email) error {
				if calls++; calls > 1 {
					return nil
				}
				ended, cancel := context.WithCancel(ctx)
				cancel()
				err := fault(ended, r)
				testkit.NoError(t, err)
				return err
			}))
			task := runnerkit.Enqueue(t, r, sendEmail.With(email{"ann"}))
			runnertest.RunDue(t, r)
			testkit.Equal(t, "losses after "+name, runnerkit.Get(t, r, task.ID).Losses, 1)
		})
	}
}
