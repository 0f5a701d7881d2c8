package runner_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"net/url"
	"sync"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// openApp opens a database like an application that does not use OpenDB.
func openApp(path string) (*sql.DB, error) {
	query := url.Values{"_txlock": {"immediate"}, "_pragma": {"busy_timeout(10000)"}}
	return sql.Open("sqlite", (&url.URL{Scheme: "file", OmitHost: true, Path: path, RawQuery: query.Encode()}).String())
}

// app returns the application's handle to the database of r, with a new table
// named effects.
func app(t testing.TB, r *runner.Runner) *sql.DB {
	t.Helper()
	handle := opened(t, admin.Path(r))
	if _, err := handle.Exec(`CREATE TABLE effects (task_id INTEGER NOT NULL)`); err != nil {
		t.Fatal(err)
	}
	return handle
}

func begin(t testing.TB, handle *sql.DB) *sql.Tx {
	t.Helper()
	tx, err := handle.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

func count(t testing.TB, handle *sql.DB, query string) (n int) {
	t.Helper()
	if err := handle.QueryRow(query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestEnqueueInCallersTransaction(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	handle := app(t, r)
	r.Register(quick.Handler(func(context.Context, any) error { return nil }))
	runnerkit.Work(t, r)

	tx := begin(t, handle)
	if _, err := tx.Exec(`INSERT INTO effects VALUES (1)`); err != nil {
		t.Fatal(err)
	}
	gone, err := r.EnqueueTx(t.Context(), tx, quick.With(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(); err != nil {
		t.Fatal(err)
	}
	_, err = r.Get(t.Context(), gone.ID)
	testkit.ErrorIs(t, err, jobs.ErrNotFound)

	tx = begin(t, handle)
	if _, err := tx.Exec(`INSERT INTO effects VALUES (2)`); err != nil {
		t.Fatal(err)
	}
	task, err := r.EnqueueTx(t.Context(), tx, quick.With(nil, jobs.Unique("once")))
	if err != nil {
		t.Fatal(err)
	}
	same, err := r.EnqueueTx(t.Context(), tx, quick.With(nil, jobs.Unique("once")))
	testkit.NoError(t, err)
	testkit.Equal(t, "task of the same key", same.ID, task.ID)
	testkit.Equal(t, "state of the task of the same key", same.State, jobs.Pending)
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), testkit.Patience)
	defer stop()
	done, err := r.Await(ctx, task.ID) // no call tells the worker about the commit, so the worker must notice it
	testkit.NoError(t, err)
	testkit.Equal(t, "state", done.State, jobs.Completed)
	testkit.Equal(t, "creator", done.CreatedBy, task.CreatedBy)
	testkit.Equal(t, "effects", count(t, handle, `SELECT count(*) FROM effects`), 1)
}

func TestBusyEnqueueNamesTransactionOfItsOwnProgram(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{BusyTimeout: time.Millisecond})
	begin(t, app(t, r))
	_, err := r.Enqueue(t.Context(), quick.With(nil))
	testkit.ErrorIs(t, err, jobs.ErrBusy)
	testkit.Contains(t, err.Error(), "use EnqueueTx")
}

func TestTransactionOfAnotherFileIsRejected(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	other := app(t, runnerkit.Open(t, runner.Options{}))
	tx := begin(t, other)
	_, err := r.EnqueueTx(t.Context(), tx, quick.With(nil))
	testkit.ErrorIs(t, err, jobs.ErrInvalid, "another database")
	testkit.Equal(t, "tasks in the other database", count(t, other, `SELECT count(*) FROM tasks`), 0)
	_, err = r.EnqueueTx(t.Context(), tx, jobs.Spec{})
	testkit.ErrorIs(t, err, jobs.ErrInvalid)
	testkit.ErrorIs(t, runner.FinishTx(t.Context(), tx, nil), jobs.ErrInvalid)
}

// shipper returns a handler that writes a row and finishes its task in one
// transaction. At several points the handler calls the function "around" with
// the name of the point.
func shipper(handle *sql.DB, around func(ctx context.Context, point string, tx *sql.Tx) error) func(context.Context, any) error {
	return func(ctx context.Context, _ any) error {
		if err := around(ctx, "start", nil); err != nil {
			return err
		}
		tx, err := handle.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		task, _ := runner.TaskFromContext(ctx)
		if _, err := tx.ExecContext(ctx, `INSERT INTO effects VALUES (?)`, task.ID); err != nil {
			return err
		}
		if err := around(ctx, "effect", tx); err != nil {
			return err
		}
		if err := runner.FinishTx(ctx, tx, nil); err != nil {
			return errors.Join(err, around(ctx, "refused", tx))
		}
		if err := around(ctx, "finished", tx); err != nil {
			return err
		}
		if err := tx.Commit(); err != nil {
			return err
		}
		return around(ctx, "committed", nil)
	}
}

var ship = jobs.Define[any]("ship", jobs.WithBackoff(jobs.Backoff{}), jobs.MaxAttempts(3))

// runShipTask enqueues a task of the job ship, runs tasks until none is due,
// and returns the task.
func runShipTask(t *testing.T, around func(ctx context.Context, point string, tx *sql.Tx) error) (*runner.Runner, *sql.DB, jobs.Task) {
	t.Helper()
	r := runnerkit.Open(t, runner.Options{})
	handle := app(t, r)
	r.Register(ship.Handler(shipper(handle, around)))
	task := runnerkit.Enqueue(t, r, ship.With(nil))
	runnerkit.Drain(t, r)
	return r, handle, runnerkit.Get(t, r, task.ID)
}

func TestEffectAndFinishCommitTogether(t *testing.T) {
	for name, at := range map[string]struct {
		point    string
		fail     error
		attempts int
	}{
		"as it should be":             {"", nil, 1},
		"rolled back before":          {"effect", errors.New("no"), 2},
		"rolled back":                 {"finished", errors.New("no"), 2},
		"error after the commit":      {"committed", errors.New("late"), 1},
		"panic after the commit":      {"committed", nil, 1},
		"snoozes instead of a commit": {"finished", jobs.Snooze(0), 2},
	} {
		t.Run(name, func(t *testing.T) {
			calls := 0
			r, handle, task := runShipTask(t, func(_ context.Context, point string, _ *sql.Tx) error {
				if point == "start" {
					calls++
				}
				if point != at.point || calls > 1 {
					return nil
				}
				if at.fail == nil {
					panic("after the commit")
				}
				return at.fail
			})
			testkit.Equal(t, "state", task.State, jobs.Completed)
			testkit.Equal(t, "calls", calls, at.attempts)
			testkit.Equal(t, "error", task.Error, "")
			testkit.Equal(t, "effects", count(t, handle, `SELECT count(*) FROM effects`), 1)
			testkit.Equal(t, "completed attempts", count(t, handle, `SELECT count(*) FROM attempts_view WHERE state = 'completed'`), 1)
			testkit.Equal(t, "counted tasks", count(t, handle, `SELECT sum(n) FROM counters WHERE state = 'completed'`), 1)
			testkit.Equal(t, "rejected results", db.Of(r).Fenced.Load(), 0)
		})
	}
}

// TestFinishTxCountsOncePerTransaction calls FinishTx a second time: in the
// same transaction, or in another one after a rollback.
func TestFinishTxCountsOncePerTransaction(t *testing.T) {
	for _, again := range []bool{false, true} {
		var second error
		calls := 0
		r := runnerkit.Open(t, runner.Options{})
		handle := app(t, r)
		r.Register(double.Handler(func(ctx context.Context, _ int) (int, error) {
			if calls++; calls > 1 {
				return 7, nil
			}
			tx, err := handle.BeginTx(ctx, nil)
			testkit.NoError(t, err)
			testkit.NoError(t, runner.FinishTx(ctx, tx, 1))
			if again {
				testkit.NoError(t, tx.Rollback())
				tx, err = handle.BeginTx(ctx, nil)
				testkit.NoError(t, err)
			}
			second = runner.FinishTx(ctx, tx, 2)
			return 0, tx.Commit()
		}))
		task := runnerkit.Enqueue(t, r, double.With(1, jobs.WithBackoff(jobs.Backoff{})))
		runnerkit.Drain(t, r)
		want := `7`
		if again {
			testkit.NoError(t, second)
			want = `2`
		} else {
			testkit.ErrorIs(t, second, jobs.ErrLost)
		}
		testkit.Equal(t, "result", string(runnerkit.Get(t, r, task.ID).Result), want)
	}
}

func TestFinishThatIsNotCommittedFailsAttempt(t *testing.T) {
	calls := 0
	r := runnerkit.Open(t, runner.Options{})
	handle := app(t, r)
	r.Register(ship.Handler(func(ctx context.Context, _ any) error {
		calls++
		tx, err := handle.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		if err := runner.FinishTx(ctx, tx, nil); err != nil {
			return err
		}
		return tx.Rollback()
	}))
	task := runnerkit.Enqueue(t, r, ship.With(nil))
	runnerkit.Drain(t, r)
	task = runnerkit.Get(t, r, task.ID)
	testkit.Equal(t, "state", task.State, jobs.Failed)
	testkit.Equal(t, "calls", calls, 3)
	testkit.Contains(t, task.Error, "not committed")
}

func TestStaleAttemptCannotCommit(t *testing.T) {
	var refused, committed error
	calls := 0
	var handle *sql.DB
	r := runnerkit.Open(t, runner.Options{})
	handle = app(t, r)
	r.Register(ship.Handler(shipper(handle, func(ctx context.Context, point string, tx *sql.Tx) error {
		switch point {
		case "start":
			if calls++; calls > 1 {
				return nil
			}
			// This statement does what the reaper of another worker does if it
			// considers this worker dead.
			_, err := handle.Exec(`UPDATE tasks SET state = 'pending', generation_id = generation_id + 1, attempt = 0, losses = 1,
				lease_expires_at = NULL`)
			return err
		case "refused":
			committed = tx.Commit()
		}
		return nil
	})))
	r.Use(func(ctx context.Context, task jobs.Task, next func(context.Context, jobs.Task) (json.RawMessage, error)) (result json.RawMessage,
		err error) {
		if result, err = next(ctx, task); err != nil {
			refused = err
		}
		return result, err
	})
	task := runnerkit.Enqueue(t, r, ship.With(nil))
	runnerkit.Drain(t, r)
	testkit.ErrorIs(t, refused, jobs.ErrLost)
	testkit.ErrorIs(t, committed, sql.ErrTxDone)
	testkit.Equal(t, "state", runnerkit.Get(t, r, task.ID).State, jobs.Completed)
	testkit.Equal(t, "calls", calls, 2)
	testkit.Equal(t, "effects", count(t, handle, `SELECT count(*) FROM effects`), 1)
}

// TestResultOfTransactionalFinishCounts checks the event of a task that a
// transaction of the caller has finished. The event must contain the result of
// the task.
func TestResultOfTransactionalFinishCounts(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	handle := app(t, r)
	r.Register(double.Handler(func(ctx context.Context, n int) (int, error) {
		tx, err := handle.BeginTx(ctx, nil)
		if err != nil {
			return 0, err
		}
		defer func() { _ = tx.Rollback() }()
		if err := runner.FinishTx(ctx, tx, 2*n); err != nil {
			return 0, err
		}
		return 0, tx.Commit() // the worker ignores the result 0, because FinishTx has set the result
	}))
	task := runnerkit.Enqueue(t, r, double.With(4))
	runnerkit.Drain(t, r)
	testkit.Equal(t, "result", string(runnerkit.Get(t, r, task.ID).Result), "8")
}

// TestTransactionReleasesDependentsOfItsTask checks that a transaction that
// finishes a task also releases the dependents of that task. A task that a
// transaction enqueues can wait for other tasks like any other task.
func TestTransactionReleasesDependentsOfItsTask(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	handle := app(t, r)
	var mu sync.Mutex
	var order []int64
	r.Register(ship.Handler(shipper(handle, func(ctx context.Context, point string, _ *sql.Tx) error {
		if point == "start" {
			task, _ := runner.TaskFromContext(ctx)
			mu.Lock()
			defer mu.Unlock()
			order = append(order, task.ID)
		}
		return nil
	})))
	tx := begin(t, handle)
	var last int64
	lane := jobs.Lane("a")
	for i, options := range [][]jobs.Option{{lane}, {lane}, {lane}, {jobs.DependsOn(3)}, {jobs.DependsOn(4)}} {
		task, err := r.EnqueueTx(t.Context(), tx, ship.With(nil, options...))
		if err != nil {
			t.Fatal(err)
		}
		want := jobs.Blocked
		if i == 0 {
			want = jobs.Pending
		}
		if last = task.ID; task.State != want {
			t.Errorf("task %d: got state %s, want %s", task.ID, task.State, want)
		}
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	runnerkit.Drain(t, r, runner.WorkOptions{Concurrency: 4})
	testkit.Equal(t, "state of the last task", runnerkit.Get(t, r, last).State, jobs.Completed)
	testkit.Equal(t, "order of the starts", order, []int64{1, 2, 3, 4, 5})
}
