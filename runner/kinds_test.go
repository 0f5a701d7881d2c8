package runner_test

import (
	"context"
	"database/sql"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/runner/internal/testkit"
	"example.com/runner/internal/testkit/runnerkit"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// TestCallsReturnTheirKindsOfErrors makes the calls of the table in docs/embedding.md that fail with an error of the kind invalid, not
// found or conflict.
func TestCallsReturnTheirKindsOfErrors(t *testing.T) {
	kinds := map[string]error{"ErrInvalid": jobs.ErrInvalid, "ErrNotFound": jobs.ErrNotFound, "ErrConflict": jobs.ErrConflict}
	calls := kindCalls(t)
	page, err := os.ReadFile("../docs/embedding.md")
	testkit.NoError(t, err)
	var documented []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([A-Z]\\w*)` \\| (`Err.*) \\|$").FindAllStringSubmatch(string(page), -1) {
		for kind := range kinds {
			if strings.Contains(row[2], "`"+kind+"`") {
				documented = append(documented, row[1]+" "+kind)
			}
		}
	}
	slices.Sort(documented)
	// this error needs two calls at a time
	documented = slices.DeleteFunc(documented, func(s string) bool { return s == "IndexMetadata ErrConflict" })
	testkit.Equal(t, "errors in docs/embedding.md", strings.Join(documented, "\n"),
		strings.Join(slices.Sorted(maps.Keys(calls)), "\n"))
	for name, call := range calls {
		_, kind, _ := strings.Cut(name, " ")
		if err := call(); !errors.Is(err, kinds[kind]) {
			t.Errorf("%s: got %v, want %v", name, err, kinds[kind])
		}
	}
}

// kindCalls has a call for each error in the table of docs/embedding.md. The key is the name of the call and the kind of the error.
func kindCalls(t *testing.T) map[string]func() error {
	ctx := t.Context()
	r := runnerkit.Open(t, runner.Options{})
	bad := jobs.Spec{Job: "no name!"}
	schedule := jobs.Schedule{Name: "x", Cron: "bad", Spec: quick.With(nil)}
	list := []jobs.Schedule{schedule}
	unknown := jobs.Filter{States: []jobs.State{"done"}}
	nothing := func(context.Context, jobs.Task) error { return nil }
	return map[string]func() error{
		"AddCursor ErrInvalid":      func() error { return r.AddCursor(ctx, "") },
		"IndexMetadata ErrInvalid":  func() error { return r.IndexMetadata(ctx, "no key!") },
		"Add ErrInvalid":            func() error { _, err := r.Add(ctx, bad); return err },
		"AddTx ErrInvalid":          func() error { _, err := r.AddTx(ctx, nil, quick.With(nil)); return err },
		"ApplySchedules ErrInvalid": func() error { _, err := r.ApplySchedules(ctx, list, runner.ApplyOptions{}); return err },
		"Await ErrNotFound":         func() error { _, err := r.Await(ctx, 99); return err },
		"Backup ErrConflict":        func() error { _, err := r.Backup(ctx, r.Path(), false); return err },
		"CancelTx ErrInvalid":       func() error { _, err := r.CancelTx(ctx, nil, []int64{1}, runner.CancelOptions{}); return err },
		"Count ErrInvalid":          func() error { _, err := r.Count(ctx, unknown); return err },
		"CountByState ErrInvalid":   func() error { _, err := r.CountByState(ctx, unknown); return err },
		"Enqueue ErrInvalid":        func() error { _, err := r.Enqueue(ctx, bad); return err },
		"EnqueueAll ErrInvalid":     func() error { _, err := r.EnqueueAll(ctx, slices.Values([]jobs.Spec{bad})); return err },
		"EnqueueTx ErrInvalid":      func() error { _, err := r.EnqueueTx(ctx, nil, quick.With(nil)); return err },
		"FinishTx ErrInvalid": func() error {
			tx, err := sqlTx(t, r)
			testkit.NoError(t, err)
			return runner.FinishTx(ctx, tx, nil)
		},
		"Get ErrNotFound":         func() error { _, err := r.Get(ctx, 99); return err },
		"GetSchedule ErrNotFound": func() error { _, err := r.GetSchedule(ctx, "x"); return err },
		"GetTx ErrInvalid":        func() error { _, err := r.GetTx(ctx, nil, 1); return err },
		"GetTx ErrNotFound": func() error {
			tx, err := sqlTx(t, r)
			testkit.NoError(t, err)
			defer func() { _ = tx.Rollback() }()
			_, err = r.GetTx(ctx, tx, 99)
			return err
		},
		"IDs ErrInvalid":  func() error { _, err := r.IDs(ctx, unknown, runner.Page{}); return err },
		"List ErrInvalid": func() error { _, err := r.List(ctx, unknown, runner.Page{}); return err },
		"New ErrConflict": func() error {
			handle, err := runner.OpenDB(ctx, filepath.Join(t.TempDir(), "app.db"))
			testkit.NoError(t, err)
			defer handle.Close()
			_, err = handle.ExecContext(ctx, "CREATE TABLE runner_tasks (title TEXT)")
			testkit.NoError(t, err)
			_, err = runner.New(ctx, handle, runner.Options{})
			return err
		},
		"New ErrInvalid":             func() error { _, err := runner.New(ctx, nil, runner.Options{}); return err },
		"OnFinished ErrInvalid":      func() error { return r.OnFinished(ctx, "", nothing) },
		"OnFinished ErrNotFound":     func() error { return removedCursor(ctx, r) },
		"Open ErrInvalid":            func() error { _, err := runner.Open(ctx, ":memory:", runner.Options{}); return err },
		"OpenDB ErrInvalid":          func() error { _, err := runner.OpenDB(ctx, ":memory:"); return err },
		"Pause ErrInvalid":           func() error { return r.Pause(ctx, "", "no name!") },
		"PauseSchedule ErrNotFound":  func() error { return r.PauseSchedule(ctx, "x") },
		"RemoveCursor ErrNotFound":   func() error { return r.RemoveCursor(ctx, "x") },
		"RemoveLimit ErrNotFound":    func() error { return r.RemoveLimit(ctx, jobs.Target{Kind: jobs.QueueTarget, Name: "x"}) },
		"RemoveSchedule ErrNotFound": func() error { return r.RemoveSchedule(ctx, "x") },
		"Resume ErrInvalid":          func() error { return r.Resume(ctx, "no name!") },
		"ResumeSchedule ErrNotFound": func() error { return r.ResumeSchedule(ctx, "x") },
		"RetryTx ErrInvalid":         func() error { _, err := r.RetryTx(ctx, nil, []int64{1}, 0); return err },
		"RunSchedule ErrConflict": func() error { // this program has not registered a function for the schedule
			ticked := jobs.Schedule{Name: "ticked", Cron: "@daily", OnTick: true, Spec: quick.With(nil)}
			testkit.NoError(t, r.Schedule(ctx, ticked))
			_, err := r.RunSchedule(ctx, "ticked")
			return err
		},
		"RunSchedule ErrNotFound": func() error { _, err := r.RunSchedule(ctx, "x"); return err },
		"Schedule ErrInvalid":     func() error { return r.Schedule(ctx, schedule) },
		"SetLimit ErrInvalid":     func() error { return r.SetLimit(ctx, jobs.Limit{}) },
		"Upstream ErrInvalid":     func() error { _, err := runner.Upstream(ctx); return err },
		"Work ErrInvalid":         func() error { return runnerkit.Open(t, runner.Options{}).Work(ctx) },
		"Work ErrConflict": func() (err error) {
			other := runnerkit.Open(t, runner.Options{})
			other.Register(quick.Handler(func(ctx context.Context, _ any) error { err = other.Work(ctx); return nil }))
			runnerkit.Enqueue(t, other, quick.With(nil))
			runnerkit.Drain(t, other)
			return err
		},
	}
}

// sqlTx begins a transaction on a handle that the test closes at its end.
func sqlTx(t *testing.T, r *runner.Runner) (*sql.Tx, error) {
	handle, err := runner.OpenDB(t.Context(), r.Path())
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { handle.Close() })
	return handle.Begin()
}

// removedCursor calls OnFinished with a function that removes the cursor, and returns the error of OnFinished.
func removedCursor(ctx context.Context, r *runner.Runner) error {
	started := make(chan error, 1)
	go func() {
		started <- r.OnFinished(ctx, "removed", func(context.Context, jobs.Task) error { return nil })
	}()
	for {
		if err := r.RemoveCursor(ctx, "removed"); err == nil {
			return <-started
		}
	}
}
