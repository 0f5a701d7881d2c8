// Package drivers tests package runner in a program that also uses another
// SQLite driver. It is a module of its own, so that the module of runner does
// not require that driver.
package drivers

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	_ "github.com/ncruces/go-sqlite3/driver" // registers the driver sqlite3

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

var quick = jobs.Define[any]("quick")

// TestTransactionOfAnotherDriverIsRefused begins transactions with another
// SQLite driver. Runner must not accept them. The transactions are on a
// different file: if both drivers locked the same file, they could block each
// other for ever.
func TestTransactionOfAnotherDriverIsRefused(t *testing.T) {
	ctx := t.Context()
	r, err := runner.Open(ctx, filepath.Join(t.TempDir(), "app.db"), runner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	other, err := sql.Open("sqlite3", "file:"+filepath.Join(t.TempDir(), "other.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	r.Register(quick.Handler(func(ctx context.Context, _ any) error {
		refuses(t, other, "FinishTx", func(tx *sql.Tx) error { return runner.FinishTx(ctx, tx, nil) })
		refuses(t, other, "StepTx", func(tx *sql.Tx) error {
			_, err := runner.StepTx(ctx, tx, "step", func(context.Context) (int, error) { return 1, nil })
			return err
		})
		return jobs.Fail(errors.New("no transaction was accepted"))
	}))
	failed, err := r.Enqueue(ctx, quick.With(nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Work(ctx, runner.WorkOptions{UntilEmpty: true}); err != nil {
		t.Fatal(err)
	}
	task, err := r.Enqueue(ctx, quick.With(nil))
	if err != nil {
		t.Fatal(err)
	}
	for name, call := range map[string]func(tx *sql.Tx) error{
		"EnqueueTx":     func(tx *sql.Tx) error { _, err := r.EnqueueTx(ctx, tx, quick.With(nil)); return err },
		"EnqueueManyTx": func(tx *sql.Tx) error { _, err := r.EnqueueManyTx(ctx, tx, quick.With(nil)); return err },
		"GetTx":         func(tx *sql.Tx) error { _, err := r.GetTx(ctx, tx, task.ID); return err },
		"CancelTx": func(tx *sql.Tx) error {
			_, err := r.CancelTx(ctx, tx, []int64{task.ID}, runner.CancelOptions{})
			return err
		},
		"RetryTx": func(tx *sql.Tx) error {
			_, err := r.RetryTx(ctx, tx, []int64{failed.ID}, runner.RetryOptions{})
			return err
		},
	} {
		refuses(t, other, name, call)
	}
	if _, err := runner.New(ctx, other, runner.Options{}); !errors.Is(err, jobs.ErrInvalid) {
		t.Errorf("New: got error %v, want jobs.ErrInvalid", err)
	}
	for id, want := range map[int64]jobs.State{failed.ID: jobs.Failed, task.ID: jobs.Pending} {
		if got, err := r.Get(ctx, id); err != nil || got.State != want {
			t.Errorf("task %d: got state %s and error %v, want %s", id, got.State, err, want)
		}
	}
	if tasks, err := r.List(ctx, jobs.Filter{}); err != nil || len(tasks) != 2 {
		t.Errorf("got %d tasks and error %v, want 2", len(tasks), err)
	}
}

// refuses begins a transaction on a database that another driver opened, and
// passes this transaction to call. It fails the test unless that function
// returns an error of kind jobs.ErrInvalid with the code other_driver. name is
// the name of the tested call in the failure message.
func refuses(t *testing.T, other *sql.DB, name string, call func(tx *sql.Tx) error) {
	t.Helper()
	tx, err := other.BeginTx(t.Context(), nil)
	if err != nil {
		t.Error(err)
		return
	}
	defer tx.Rollback()
	err = call(tx)
	if problem, ok := errors.AsType[*jobs.Error](err); !ok || !errors.Is(err, jobs.ErrInvalid) || problem.Code != "other_driver" {
		t.Errorf("%s: got error %v, want jobs.ErrInvalid with the code other_driver", name, err)
	}
}
