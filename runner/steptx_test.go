package runner_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// effectInStep runs a step that writes a row in a transaction. At each point
// where a process could die, it calls at with the name of the point. If that
// function returns an error, effectInStep returns the error and rolls back a
// transaction that has not ended.
func effectInStep(ctx context.Context, handle *sql.DB, name string, effect int64, at func(point string) error) error {
	tx, err := handle.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := at("begun"); err != nil {
		return err
	}
	kept, err := runner.StepTx(ctx, tx, name, func(ctx context.Context) (string, error) {
		if _, err := tx.ExecContext(ctx, `INSERT INTO effects VALUES (?)`, effect); err != nil {
			return "", err
		}
		return name, at("written")
	})
	if err == nil && kept != name {
		err = jobs.Cancel(errors.New("the step " + name + " has the value " + kept))
	}
	if err != nil {
		return err
	}
	if err := at("stored"); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	return at("committed")
}

var stepPoints = []string{"begun", "written", "stored", "committed"}

// TestStepAndItsEffectCommitTogether interrupts the function once, at each
// point of each step. The interruption is an error, a panic, or an error after
// which the same attempt calls the step again. In the end the row of each step
// exists exactly once.
func TestStepAndItsEffectCommitTogether(t *testing.T) {
	once := errors.New("once")
	for _, step := range []string{"first", "second"} {
		for _, point := range stepPoints {
			for name, test := range map[string]struct {
				fail     func() error
				again    bool // whether the same attempt calls the step again
				attempts int
			}{
				"error":      {func() error { return once }, false, 2},
				"panic":      {func() error { panic("once") }, false, 2},
				"same again": {func() error { return once }, true, 1},
			} {
				if test.again && point == "committed" {
					continue // skip this case: the step is stored, so the same attempt must not call it again
				}
				t.Run(step+" "+point+" "+name, func(t *testing.T) {
					t.Parallel()
					r := runnerkit.Open(t, runner.Options{})
					handle := app(t, r)
					calls, failed := 0, false
					r.Register(ship.Handler(func(ctx context.Context, _ any) error {
						calls++
						for i, name := range []string{"first", "second"} {
							at := func(p string) error {
								if failed || name != step || p != point {
									return nil
								}
								failed = true
								return test.fail()
							}
							err := effectInStep(ctx, handle, name, int64(i), at)
							if errors.Is(err, once) && test.again {
								err = effectInStep(ctx, handle, name, int64(i), at)
							}
							if err != nil {
								return err
							}
						}
						return nil
					}))
					task := runnerkit.Enqueue(t, r, ship.With(nil))
					runnerkit.Drain(t, r)
					testkit.Equal(t, "state", runnerkit.Get(t, r, task.ID).State, jobs.Completed)
					testkit.Equal(t, "calls", calls, test.attempts)
					testkit.Equal(t, "effects", count(t, handle, `SELECT count(*) FROM effects`), 2)
					testkit.Equal(t, "different effects", count(t, handle, `SELECT count(DISTINCT task_id) FROM effects`), 2)
					testkit.Equal(t, "steps", count(t, handle, `SELECT count(*) FROM steps WHERE seq <= 2`), 2)
				})
			}
		}
	}
}

// TestStepAndItsEffectSurviveKillTogether kills the worker at each point of
// each step.
func TestStepAndItsEffectSurviveKillTogether(t *testing.T) {
	for _, step := range []string{"first", "second"} {
		for _, point := range stepPoints {
			t.Run(step+" "+point, func(t *testing.T) {
				t.Parallel()
				r := runnerkit.Open(t, runner.Options{})
				handle := app(t, r)
				task := runnerkit.Enqueue(t, r, invoice.With(nil))
				if startShop(t, admin.Path(r), step+" "+point).Wait() == nil {
					t.Errorf("got a worker that ended by itself, want it killed")
				}
				kept := count(t, handle, `SELECT count(*) FROM steps`)
				testkit.Equal(t, "effects after the kill", count(t, handle, `SELECT count(*) FROM effects`), kept)
				if err := startShop(t, admin.Path(r), "none").Wait(); err != nil {
					t.Fatal(err)
				}
				testkit.Equal(t, "state", runnerkit.Get(t, r, task.ID).State, jobs.Completed)
				testkit.Equal(t, "effects", count(t, handle, `SELECT count(*) FROM effects`), 2)
			})
		}
	}
}

// TestStaleAttemptCannotCommitStep takes the task away from its attempt before
// the transaction of the step begins. StepTx must roll this transaction back.
func TestStaleAttemptCannotCommitStep(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	handle := app(t, r)
	calls := 0
	var refused, committed error
	r.Register(ship.Handler(func(ctx context.Context, _ any) error {
		calls++
		if calls > 1 {
			return effectInStep(ctx, handle, "step", 2, func(string) error { return nil })
		}
		// This statement does what the reaper of another worker does if it
		// considers this worker dead.
		if _, err := handle.Exec(`UPDATE tasks SET state = 'pending', generation_id = generation_id + 1, attempt = 0, losses = 1,
			lease_expires_at = NULL`); err != nil {
			return err
		}
		tx := begin(t, handle)
		_, refused = runner.StepTx(ctx, tx, "step", func(ctx context.Context) (int, error) {
			_, err := tx.Exec(`INSERT INTO effects VALUES (1)`)
			return 1, err
		})
		committed = tx.Commit()
		return refused
	}))
	task := runnerkit.Enqueue(t, r, ship.With(nil))
	runnerkit.Drain(t, r)
	testkit.ErrorIs(t, refused, jobs.ErrLost)
	testkit.ErrorIs(t, committed, sql.ErrTxDone)
	testkit.Equal(t, "state", runnerkit.Get(t, r, task.ID).State, jobs.Completed)
	testkit.Equal(t, "effect", count(t, handle, `SELECT sum(task_id) FROM effects`), 2)
}

// TestStepsInTransactionsFollowRulesOfSteps mixes steps with and without a
// transaction.
func TestStepsInTransactionsFollowRulesOfSteps(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	handle := app(t, r)
	value := func(n int) func(context.Context) (int, error) {
		return func(context.Context) (int, error) { return n, nil }
	}
	calls := 0
	r.Register(ship.Handler(func(ctx context.Context, _ any) error {
		if calls++; calls == 2 {
			n, err := runner.Step(ctx, "b", value(0))
			testkit.NoError(t, err)
			testkit.Equal(t, "value of b in the second attempt", n, 2)
			return nil
		}
		plain := func(name string, n int) error { _, err := runner.Step(ctx, name, value(n)); return err }
		in := func(tx *sql.Tx, name string, n int) error {
			_, err := runner.StepTx(ctx, tx, name, value(n))
			return err
		}
		testkit.NoError(t, plain("a", 1))
		tx := begin(t, handle)
		testkit.NoError(t, in(tx, "b", 2))
		testkit.NoError(t, in(tx, "c", 3))
		testkit.NoError(t, tx.Commit())
		tx = begin(t, handle)
		testkit.NoError(t, in(tx, "rolled back", 4))
		testkit.NoError(t, in(tx, "rolled back, too", 4))
		testkit.NoError(t, tx.Rollback())
		testkit.NoError(t, plain("d", 5))
		testkit.NoError(t, plain("rolled back", 6))
		testkit.ErrorIs(t, plain("b", 0), jobs.ErrInvalid, "twice")
		for _, name := range []string{"a", "b", "d", ""} {
			tx = begin(t, handle)
			testkit.ErrorIs(t, in(tx, name, 0), jobs.ErrInvalid)
			testkit.ErrorIs(t, tx.Commit(), sql.ErrTxDone)
		}
		tx = begin(t, handle)
		testkit.NoError(t, in(tx, "e", 7))
		testkit.ErrorIs(t, in(tx, "e", 7), jobs.ErrInvalid, "twice")
		testkit.ErrorIs(t, in(nil, "nil", 7), jobs.ErrInvalid)
		testkit.ErrorIs(t, runner.FinishTx(ctx, nil, nil), jobs.ErrInvalid)
		tx = begin(t, handle)
		failure := errors.New("no")
		_, err := runner.StepTx(ctx, tx, "f", func(context.Context) (int, error) { return 0, failure })
		testkit.ErrorIs(t, err, failure)
		testkit.ErrorIs(t, tx.Commit(), sql.ErrTxDone)
		return errors.New("again")
	}))
	task := runnerkit.Enqueue(t, r, ship.With(nil))
	runnerkit.Drain(t, r)
	steps, err := admin.Steps(t.Context(), r, task.ID)
	testkit.NoError(t, err)
	var got []string
	for _, step := range steps {
		got = append(got, step.Name+"="+string(step.Value))
	}
	testkit.Equal(t, "steps", got, []string{"a=1", "b=2", "c=3", "d=5", "rolled back=6"})
	testkit.Equal(t, "calls", calls, 2)
}

func TestStepTxOutsideOfTaskLeavesTransaction(t *testing.T) {
	handle := app(t, runnerkit.Open(t, runner.Options{}))
	tx := begin(t, handle)
	n, err := runner.StepTx(t.Context(), tx, "x", func(context.Context) (int, error) { return 7, nil })
	testkit.Equal(t, "value of the step", n, 7)
	testkit.NoError(t, err)
	testkit.NoError(t, tx.Commit())
}

// TestFromReturnsRunnerOfHandler enqueues a task in a handler.
func TestFromReturnsRunnerOfHandler(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	r.Register(ship.Handler(func(ctx context.Context, _ any) error {
		own, ok := runner.FromContext(ctx)
		if !ok || own != r {
			t.Errorf("got runner %p, %v; want %p, true", own, ok, r)
		}
		_, err := own.Enqueue(ctx, quick.With(nil))
		return err
	}), quick.Handler(func(context.Context, any) error { return nil }))
	runnerkit.Enqueue(t, r, ship.With(nil))
	runnerkit.Drain(t, r)
	n, _, err := r.Count(t.Context(), jobs.Filter{States: []jobs.State{jobs.Completed}})
	testkit.NoError(t, err)
	testkit.Equal(t, "completed tasks", n, 2)
	if own, ok := runner.FromContext(t.Context()); ok || own != nil {
		t.Errorf("outside of an attempt: got runner %p, %v; want nil, false", own, ok)
	}
}
