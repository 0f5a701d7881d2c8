package postgres_test

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/pgkit"
	"example.com/runner/test/testkit/runnerkit"
)

// TestWorkersNoticeCommitOfCaller commits tasks, and then their cancellation,
// in transactions of the caller. Without notices the worker would look for new
// tasks and for cancel requests only every ten minutes.
func TestWorkersNoticeCommitOfCaller(t *testing.T) {
	at := pgkit.Address(t)
	r := open(t, at, runner.Options{})
	app, err := sql.Open("pgx", at)
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close()

	within := func(do func(tx *sql.Tx) error) {
		t.Helper()
		tx, err := app.BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback() }()
		testkit.NoError(t, do(tx))
		testkit.NoError(t, tx.Commit())
	}
	started, stopped := make(chan int64), make(chan error)
	r.Register(count.Handler(func(ctx context.Context, _ int) error {
		task, _ := runner.TaskFromContext(ctx)
		started <- task.ID
		<-ctx.Done()
		stopped <- context.Cause(ctx)
		return ctx.Err()
	}))
	defer work(t, r, runner.WorkOptions{Lease: time.Hour})()
	joined(t, r, 1)
	began := time.Now()
	within(func(tx *sql.Tx) error { _, err := r.EnqueueTx(t.Context(), tx, count.With(1)); return err })
	first := <-started
	within(func(tx *sql.Tx) error { _, err := r.EnqueueManyTx(t.Context(), tx, count.With(2)); return err })
	second := <-started
	within(func(tx *sql.Tx) error {
		task, err := r.GetTx(t.Context(), tx, first)
		testkit.Equal(t, "state", task.State, jobs.Running)
		testkit.NoError(t, err)
		_, err = r.CancelTx(t.Context(), tx, []int64{first, second}, runner.CancelOptions{})
		return err
	})
	testkit.ErrorIs(t, <-stopped, jobs.ErrCancelled)
	testkit.ErrorIs(t, <-stopped, jobs.ErrCancelled)
	testkit.Within(t, patience, "the task is cancelled", func() bool {
		task, err := r.Get(t.Context(), first)
		return err == nil && task.State == jobs.Cancelled
	})
	within(func(tx *sql.Tx) error {
		_, err := r.RetryTx(t.Context(), tx, []int64{first}, runner.RetryOptions{})
		return err
	})
	testkit.Equal(t, "task that started again", <-started, first)
	if took := time.Since(began); took > patience {
		t.Errorf("got %v for all of it, want less than %v", took, patience)
	}
	_, err = r.Cancel(t.Context(), []int64{first}, runner.CancelOptions{})
	testkit.NoError(t, err)
	<-stopped
}

// TestWatchSeesTasksOfOtherProcessOnServer watches a task with one handle while
// another one runs it.
func TestWatchSeesTasksOfOtherProcessOnServer(t *testing.T) {
	at := pgkit.Address(t)
	worker, r := open(t, at, runner.Options{}), open(t, at, runner.Options{})
	seen := make(chan struct{})
	worker.Register(count.Handler(func(ctx context.Context, _ int) error {
		runner.Progress(ctx, 1, 2, "half")
		<-seen
		return nil
	}))
	task := runnerkit.Enqueue(t, r, count.With(1))
	defer work(t, worker)()
	half := false
	for task, err := range r.Watch(t.Context(), jobs.Filter{IDs: []int64{task.ID}}) {
		testkit.NoError(t, err)
		if p := task.Progress; !half && p != nil && p.Text == "half" && task.State == jobs.Running {
			half = true
			close(seen)
		}
		if task.State.Finished() {
			testkit.Equal(t, "state", task.State, jobs.Completed)
			break
		}
	}
	testkit.Equal(t, "whether its progress was seen", half, true)
}
