// Package drivers tests package runner in a program that also uses another SQLite driver. It is a module of its own, so that the module of
// runner does not require that driver.
package drivers

import (
	"database/sql"
	"errors"
	"path/filepath"
	"testing"

	_ "github.com/ncruces/go-sqlite3/driver" // registers the driver sqlite3

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

var quick = jobs.Define[any]("quick")

// TestATransactionOfAnotherDriverIsRefused begins transactions with another SQLite driver. Runner must not accept them. The transactions
// are on a different file: if both drivers locked the same file, they could block each other for ever.
func TestATransactionOfAnotherDriverIsRefused(t *testing.T) {
	ctx := t.Context()
	r, err := runner.Open(ctx, filepath.Join(t.TempDir(), "app.db"), runner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	task, err := r.Enqueue(ctx, quick.With(nil))
	if err != nil {
		t.Fatal(err)
	}
	other, err := sql.Open("sqlite3", "file:"+filepath.Join(t.TempDir(), "other.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	for name, call := range map[string]func(tx *sql.Tx) error{
		"EnqueueTx": func(tx *sql.Tx) error { _, err := r.EnqueueTx(ctx, tx, quick.With(nil)); return err },
		"AddTx":     func(tx *sql.Tx) error { _, err := r.AddTx(ctx, tx, quick.With(nil)); return err },
		"GetTx":     func(tx *sql.Tx) error { _, err := r.GetTx(ctx, tx, task.ID); return err },
		"CancelTx": func(tx *sql.Tx) error {
			_, err := r.CancelTx(ctx, tx, []int64{task.ID}, runner.CancelOptions{})
			return err
		},
	} {
		tx, err := other.BeginTx(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		err = call(tx)
		if problem, ok := errors.AsType[*jobs.Error](err); !ok || !errors.Is(err, jobs.ErrInvalid) || problem.Code != "other_driver" {
			t.Errorf("%s: got error %v, want jobs.ErrInvalid with the code other_driver", name, err)
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	}
	if _, err := runner.New(ctx, other, runner.Options{}); !errors.Is(err, jobs.ErrInvalid) {
		t.Errorf("New: got error %v, want jobs.ErrInvalid", err)
	}
	if got, err := r.Get(ctx, task.ID); err != nil || got.State != jobs.Pending {
		t.Errorf("got state %s and error %v, want %s", got.State, err, jobs.Pending)
	}
}
