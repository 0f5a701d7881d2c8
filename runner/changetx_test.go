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

// TestCancelInTransactionStopsHandlerAfterCommit cancels a running task in two
// transactions. The first one is rolled back, so only the commit of the second
// one stops the handler.
func TestCancelInTransactionStopsHandlerAfterCommit(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	handle := app(t, r)
	started, stopped := make(chan struct{}), make(chan error, 1)
	r.Register(quick.Handler(func(ctx context.Context, _ any) error {
		close(started)
		<-ctx.Done()
		stopped <- context.Cause(ctx)
		return ctx.Err()
	}))
	task := runnerkit.Enqueue(t, r, quick.With(nil))
	runnerkit.Work(t, r)
	<-started
	cancel := func(reason string) *sql.Tx {
		t.Helper()
		tx := begin(t, handle)
		done, err := r.CancelTx(t.Context(), tx, []int64{task.ID}, runner.CancelOptions{Reason: reason})
		testkit.NoError(t, err)
		testkit.Equal(t, "result", done, []jobs.ActionResult{{ID: task.ID, State: jobs.Running, Done: true}})
		return tx
	}
	testkit.NoError(t, cancel("first").Rollback())
	testkit.Equal(t, "request after the rollback", runnerkit.Get(t, r, task.ID).CancelText, "")
	tx := cancel("second")
	seen, err := r.GetTx(t.Context(), tx, task.ID)
	testkit.NoError(t, err)
	testkit.Contains(t, seen.CancelText, "second")
	testkit.Equal(t, "handlers that stopped before the commit", len(stopped), 0)
	testkit.NoError(t, tx.Commit()) // no call notifies the worker: it must notice the commit by itself
	testkit.ErrorIs(t, <-stopped, jobs.ErrCancelled)
	done, err := r.Await(t.Context(), task.ID)
	testkit.NoError(t, err)
	testkit.Equal(t, "state", done.State, jobs.Cancelled)
}

// TestCallsOfTransactionBelongTogether makes one call of each kind in a single
// transaction. After a rollback none of them has an effect; after a commit all
// of them have.
func TestCallsOfTransactionBelongTogether(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	handle := app(t, r)
	r.Register(quick.Handler(func(context.Context, any) error { return jobs.Fail(errors.New("no")) }))
	failed := runnerkit.Enqueue(t, r, quick.With(nil))
	runnerkit.Drain(t, r)
	waiting := runnerkit.Enqueue(t, r, quick.With(nil))
	all := func() (tx *sql.Tx, want map[int64]jobs.State) {
		t.Helper()
		tx = begin(t, handle)
		added, err := r.EnqueueManyTx(t.Context(), tx, quick.With(nil), quick.With(nil, jobs.Unique("k")),
			quick.With(nil, jobs.Unique("k")))
		testkit.NoError(t, err)
		testkit.Equal(t, "result of the second task of a key", added[2], jobs.Enqueued{ID: added[1].ID, Kept: true})
		_, err = r.CancelTx(t.Context(), tx, []int64{waiting.ID, added[0].ID}, runner.CancelOptions{})
		testkit.NoError(t, err)
		_, err = r.RetryTx(t.Context(), tx, []int64{failed.ID}, runner.RetryOptions{})
		testkit.NoError(t, err)
		want = map[int64]jobs.State{failed.ID: jobs.Pending, waiting.ID: jobs.Cancelled, added[0].ID: jobs.Cancelled,
			added[1].ID: jobs.Pending}
		for id, state := range want {
			task, err := r.GetTx(t.Context(), tx, id)
			testkit.NoError(t, err)
			testkit.Equal(t, "state in the transaction", task.State, state)
		}
		return tx, want
	}
	tx, _ := all()
	testkit.NoError(t, tx.Rollback())
	testkit.Equal(t, "state of the failed task after the rollback", runnerkit.Get(t, r, failed.ID).State, jobs.Failed)
	testkit.Equal(t, "state of the waiting task after the rollback", runnerkit.Get(t, r, waiting.ID).State, jobs.Pending)
	testkit.Equal(t, "tasks after the rollback", count(t, handle, `SELECT count(*) FROM tasks`), 2)
	tx, want := all()
	testkit.NoError(t, tx.Commit())
	for id, state := range want {
		testkit.Equal(t, "state after the commit", runnerkit.Get(t, r, id).State, state)
	}
}

func TestCallsOfTransactionReportTheirErrors(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	tx := begin(t, app(t, r))
	_, err := r.GetTx(t.Context(), tx, 7)
	testkit.ErrorIs(t, err, jobs.ErrNotFound)
	_, err = r.EnqueueManyTx(t.Context(), tx, quick.With(nil), jobs.Spec{})
	testkit.ErrorIs(t, err, jobs.ErrInvalid)
	other := runnerkit.Open(t, runner.Options{})
	_, err = other.EnqueueManyTx(t.Context(), tx, quick.With(nil))
	testkit.ErrorIs(t, err, jobs.ErrInvalid, "another database")
	_, err = other.CancelTx(t.Context(), tx, []int64{1}, runner.CancelOptions{})
	testkit.ErrorIs(t, err, jobs.ErrInvalid)
	_, err = other.RetryTx(t.Context(), tx, []int64{1}, runner.RetryOptions{})
	testkit.ErrorIs(t, err, jobs.ErrInvalid)
	_, err = other.GetTx(t.Context(), tx, 1)
	testkit.ErrorIs(t, err, jobs.ErrInvalid)
	testkit.NoError(t, tx.Commit())
	_, err = r.EnqueueManyTx(t.Context(), tx, quick.With(nil))
	testkit.ErrorIs(t, err, sql.ErrTxDone)
	n, _, err := r.Count(t.Context(), jobs.Filter{})
	testkit.NoError(t, err)
	testkit.Equal(t, "tasks", n, 0)
}

// TestTransactionWithoutWriteLockIsBusy starts a transaction without the write
// lock, while another transaction holds that lock. A call in the first
// transaction fails because the database is busy.
func TestTransactionWithoutWriteLockIsBusy(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	plain, err := sql.Open("sqlite", "file:"+admin.Path(r)+"?_pragma=busy_timeout(1)")
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	begin(t, app(t, r)) // this transaction holds the write lock until the test ends
	tx := begin(t, plain)
	_, err = r.EnqueueManyTx(t.Context(), tx, quick.With(nil))
	testkit.ErrorIs(t, err, jobs.ErrBusy)
}

// TestRetryInTransactionRetriesDependents retries a failed task with the tasks
// that were cancelled because it failed.
func TestRetryInTransactionRetriesDependents(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	r.Register(quick.Handler(func(context.Context, any) error { return jobs.Fail(errors.New("no")) }))
	failed := runnerkit.Enqueue(t, r, quick.With(nil))
	waiting := runnerkit.Enqueue(t, r, quick.With(nil, jobs.DependsOn(failed.ID)))
	runnerkit.Drain(t, r)
	testkit.Equal(t, "state of the dependent", runnerkit.Get(t, r, waiting.ID).State, jobs.Cancelled)
	tx := begin(t, app(t, r))
	got, err := r.RetryTx(t.Context(), tx, []int64{failed.ID}, runner.RetryOptions{Dependents: true})
	testkit.NoError(t, err)
	testkit.NoError(t, tx.Commit())
	testkit.Equal(t, "results", got, []jobs.ActionResult{{ID: failed.ID, State: jobs.Pending, Done: true},
		{ID: waiting.ID, State: jobs.Blocked, Done: true}})
	testkit.Equal(t, "state after the commit", runnerkit.Get(t, r, waiting.ID).State, jobs.Blocked)
}
