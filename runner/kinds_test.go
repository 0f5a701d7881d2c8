package runner_test

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// errorKinds has the kinds of errors that kindCalls causes. The key is the name
// of the kind.
var errorKinds = map[string]error{"ErrInvalid": jobs.ErrInvalid, "ErrNotFound": jobs.ErrNotFound, "ErrConflict": jobs.ErrConflict,
	"ErrNoDatabase": jobs.ErrNoDatabase, "ErrSchema": jobs.ErrSchema, "ErrPermission": jobs.ErrPermission}

// causedElsewhere lists the errors of the table in docs/embedding.md that
// kindCalls does not cause, because they need other programs, other users or
// two calls at a time. Other tests cause these errors.
var causedElsewhere = []string{"New ErrPermission", "Open ErrPermission", "OpenDB ErrPermission"}

// documentedKinds returns the table of docs/embedding.md as a map from the name
// of a call to the kinds of its errors.
func documentedKinds(t *testing.T) map[string][]string {
	page, err := os.ReadFile("../docs/embedding.md")
	testkit.NoError(t, err)
	kinds := map[string][]string{}
	rows := regexp.MustCompile("(?m)^\\| `((?:admin\\.)?[A-Z]\\w*)` \\| (`Err.*) \\|$")
	for _, row := range rows.FindAllStringSubmatch(string(page), -1) {
		kinds[row[1]] = append(kinds[row[1]], regexp.MustCompile(`Err\w+`).FindAllString(row[2], -1)...)
	}
	return kinds
}

// TestCallsReturnTheirKindsOfErrors compares the errors of calls with the table
// in docs/embedding.md. For each error of the table whose kind is in
// errorKinds, kindCalls must have a call that causes it. The errors in
// causedElsewhere are exempt. No call may return an error of a kind that the
// table does not name for this call.
func TestCallsReturnTheirKindsOfErrors(t *testing.T) {
	calls, table := kindCalls(t), documentedKinds(t)
	var documented []string
	for call, kinds := range table {
		for _, kind := range kinds {
			if row := call + " " + kind; errorKinds[kind] != nil && !slices.Contains(causedElsewhere, row) {
				documented = append(documented, row)
			}
		}
	}
	slices.Sort(documented)
	testkit.Equal(t, "errors in docs/embedding.md", strings.Join(documented, "\n"),
		strings.Join(slices.Sorted(maps.Keys(calls)), "\n"))
	for row, call := range calls {
		name, want, _ := strings.Cut(row, " ")
		err := call()
		if !errors.Is(err, errorKinds[want]) {
			t.Errorf("%s: got %v, want %v", row, err, errorKinds[want])
		}
		for kind, is := range errorKinds {
			if errors.Is(err, is) && !slices.Contains(table[name], kind) {
				t.Errorf("%s: got an error of kind %s (%v), want one that the table has: %v", row, kind, err, table[name])
			}
		}
	}
}

// TestWritesOfReadOnlyRunnerReturnErrPermission makes each call of writeCalls
// that writes to the database.
func TestWritesOfReadOnlyRunnerReturnErrPermission(t *testing.T) {
	t.Parallel() // ConsumeFinished tries again after a second
	writer := contextRunner(t)
	testkit.NoError(t, admin.AddCursor(t.Context(), writer, "other"))
	testkit.NoError(t, admin.PauseQueues(t.Context(), writer, []string{"paused"}, admin.PauseOptions{}))
	r, err := runner.Open(t.Context(), admin.Path(writer), runner.Options{ReadOnly: true})
	testkit.NoError(t, err)
	defer r.Close()
	r.Register(quick.Handler(func(context.Context, any) error { return nil }))
	for name, call := range writeCalls() {
		if slices.Contains([]string{"Await", "Changes", "Watch"}, name) { // these calls only read and wait
			continue
		}
		if err := call(t.Context(), r); !errors.Is(err, jobs.ErrPermission) {
			t.Errorf("%s: got %v, want %v", name, err, jobs.ErrPermission)
		}
	}
}

// kindCalls has a call for each error in the table of docs/embedding.md. The
// key is the name of the call and the kind of the error.
func kindCalls(t *testing.T) map[string]func() error {
	ctx := t.Context()
	r := runnerkit.Open(t, runner.Options{})
	schedule := jobs.Schedule{Name: "x", Cron: "bad", Spec: quick.With(nil)}
	list := []jobs.Schedule{schedule}
	one := []int64{1}
	unknown := jobs.Filter{States: []jobs.State{"done"}}
	nothing := func(context.Context, jobs.Task) error { return nil }
	calls := map[string]func() error{}
	add := func(more map[string]func() error) { maps.Copy(calls, more) }
	add(enqueueKinds(t, r))
	add(openKinds(t, r))
	add(attemptKinds(t))
	add(map[string]func() error{
		"All ErrInvalid":                  func() error { return lastError(r.All(ctx, unknown)) },
		"Watch ErrInvalid":                func() error { return lastError(r.Watch(ctx, unknown)) },
		"admin.AddCursor ErrInvalid":      func() error { return admin.AddCursor(ctx, r, "") },
		"admin.ApplySchedules ErrInvalid": func() error { _, err := admin.ApplySchedules(ctx, r, list, admin.ApplyOptions{}); return err },
		"admin.ApplySchedules ErrConflict": func() error {
			for _, cron := range []string{"@daily", "@weekly"} {
				list := []jobs.Schedule{{Name: "kept", Cron: cron, Spec: quick.With(nil)}}
				if _, err := admin.ApplySchedules(ctx, r, list, admin.ApplyOptions{Keep: true}); err != nil {
					return err
				}
			}
			return nil
		},
		"Await ErrNotFound":          func() error { _, err := r.Await(ctx, 99); return err },
		"CancelTx ErrInvalid":        func() error { _, err := r.CancelTx(ctx, nil, []int64{1}, runner.CancelOptions{}); return err },
		"admin.Changes ErrInvalid":   func() error { return admin.Changes(ctx, r, nil) },
		"Count ErrInvalid":           func() error { _, _, err := r.Count(ctx, unknown); return err },
		"Get ErrNotFound":            func() error { _, err := r.Get(ctx, 99); return err },
		"admin.Schedule ErrNotFound": func() error { _, err := admin.Schedule(ctx, r, "x"); return err },
		"GetTx ErrInvalid":           func() error { _, err := r.GetTx(ctx, nil, 1); return err },
		"GetTx ErrNotFound": func() error {
			tx, err := sqlTx(t, r)
			testkit.NoError(t, err)
			defer func() { _ = tx.Rollback() }()
			_, err = r.GetTx(ctx, tx, 99)
			return err
		},
		"List ErrInvalid":                  func() error { _, err := r.List(ctx, unknown); return err },
		"ConsumeFinished ErrInvalid":       func() error { return r.ConsumeFinished(ctx, "", nothing) },
		"ConsumeFinished ErrNotFound":      func() error { return removedCursor(ctx, r) },
		"OnTick ErrInvalid":                func() error { return r.OnTick(ctx, schedule, hourOf) },
		"admin.NextTicks ErrInvalid":       func() error { _, err := admin.NextTicks(schedule, 1); return err },
		"admin.PauseQueues ErrInvalid":     func() error { return admin.PauseQueues(ctx, r, []string{"no name!"}, admin.PauseOptions{}) },
		"admin.PauseSchedule ErrNotFound":  func() error { return admin.PauseSchedule(ctx, r, "x") },
		"admin.RemoveCursor ErrNotFound":   func() error { return admin.RemoveCursor(ctx, r, "x") },
		"admin.RemoveLimit ErrNotFound":    func() error { return admin.RemoveLimit(ctx, r, admin.Target{Kind: "lane", Name: "x"}) },
		"RemoveSchedule ErrNotFound":       func() error { return r.RemoveSchedule(ctx, "x") },
		"admin.ResumeQueues ErrInvalid":    func() error { return admin.ResumeQueues(ctx, r, "no name!") },
		"admin.ResumeSchedule ErrNotFound": func() error { return admin.ResumeSchedule(ctx, r, "x") },
		"Retry ErrInvalid":                 func() error { _, err := r.Retry(ctx, one, runner.RetryOptions{In: -1}); return err },
		"RetryTx ErrInvalid":               func() error { _, err := r.RetryTx(ctx, nil, []int64{1}, runner.RetryOptions{}); return err },
		"admin.RunSchedule ErrConflict": func() error { // this program has not registered a function for the schedule
			ticked := jobs.Schedule{Name: "ticked", Cron: "@daily", OnTick: true, Spec: quick.With(nil)}
			testkit.NoError(t, r.SetSchedule(ctx, ticked))
			_, err := admin.RunSchedule(ctx, r, "ticked")
			return err
		},
		"admin.RunSchedule ErrNotFound": func() error { _, err := admin.RunSchedule(ctx, r, "x"); return err },
		"admin.SetQueues ErrConflict":   func() error { return admin.SetQueues(r, nil) },
		"admin.SetQueues ErrInvalid":    func() error { return admin.SetQueues(r, []jobs.QueueMax{{Name: "no name!"}}) },
		"SetSchedule ErrInvalid":        func() error { return r.SetSchedule(ctx, schedule) },
		"admin.SetLimit ErrInvalid":     func() error { return admin.SetLimit(ctx, r, admin.Limit{}) },
		"Upstream ErrInvalid":           func() error { _, err := runner.Upstream(ctx); return err },
	})
	return calls
}

// lastError iterates over tasks, and returns the error that ends the iteration.
func lastError(tasks iter.Seq2[jobs.Task, error]) (err error) {
	for _, err = range tasks {
	}
	return err
}

// sqlTx begins a transaction on a handle that the test closes at its end.
func sqlTx(t *testing.T, r *runner.Runner) (*sql.Tx, error) {
	handle, err := runner.OpenDB(t.Context(), admin.Path(r))
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { handle.Close() })
	return handle.Begin()
}

// removedCursor removes a cursor while ConsumeFinished runs with this cursor.
// It returns the error of ConsumeFinished.
func removedCursor(ctx context.Context, r *runner.Runner) error {
	started := make(chan error, 1)
	go func() {
		started <- r.ConsumeFinished(ctx, "removed", func(context.Context, jobs.Task) error { return nil })
	}()
	for {
		if err := admin.RemoveCursor(ctx, r, "removed"); err == nil {
			return <-started
		}
	}
}

// enqueueKinds has the calls that add tasks.
func enqueueKinds(t *testing.T, r *runner.Runner) map[string]func() error {
	ctx := t.Context()
	inTx := func(do func(tx *sql.Tx) error) error {
		tx, err := sqlTx(t, r)
		testkit.NoError(t, err)
		defer func() { _ = tx.Rollback() }()
		return do(tx)
	}
	ways := map[string]func(spec jobs.Spec) error{
		"EnqueueMany": func(spec jobs.Spec) error { _, err := r.EnqueueMany(ctx, spec); return err },
		"Enqueue":     func(spec jobs.Spec) error { _, err := r.Enqueue(ctx, spec); return err },
		"EnqueueSeq":  func(spec jobs.Spec) error { _, err := r.EnqueueSeq(ctx, slices.Values([]jobs.Spec{spec})); return err },
		"EnqueueManyTx": func(spec jobs.Spec) error {
			return inTx(func(tx *sql.Tx) error { _, err := r.EnqueueManyTx(ctx, tx, spec); return err })
		},
		"EnqueueTx": func(spec jobs.Spec) error {
			return inTx(func(tx *sql.Tx) error { _, err := r.EnqueueTx(ctx, tx, spec); return err })
		},
	}
	holder := runnerkit.Enqueue(t, r, quick.With(nil, jobs.Unique("k")))
	calls := map[string]func() error{}
	for name, enqueue := range ways {
		calls[name+" ErrInvalid"] = func() error { return enqueue(jobs.Spec{Job: "no name!"}) }
		calls[name+" ErrNotFound"] = func() error { return enqueue(quick.With(nil, jobs.DependsOn(99))) }
		calls[name+" ErrConflict"] = func() error {
			return enqueue(quick.With(nil, jobs.UniqueWith("k", jobs.UniqueOptions{Replace: true}), jobs.DependsOn(holder.ID)))
		}
	}
	edit := func(id int64, change jobs.Option) func() error {
		return func() error { _, err := r.Edit(ctx, id, change); return err }
	}
	other := runnerkit.Enqueue(t, r, quick.With(nil))
	calls["Edit ErrInvalid"] = edit(holder.ID, jobs.Queue("no name!"))
	calls["Edit ErrNotFound"] = edit(99, jobs.Priority(9))
	calls["Edit ErrConflict"] = edit(other.ID, jobs.Unique("k"))
	return calls
}

// openKinds has the calls that open or copy a database.
func openKinds(t *testing.T, r *runner.Runner) map[string]func() error {
	ctx, dir := t.Context(), t.TempDir()
	missing, text := filepath.Join(dir, "missing", "x.db"), filepath.Join(dir, "text")
	testkit.NoError(t, os.WriteFile(text, []byte("This text is not a database, although it is as long as a header.\n"), 0o600))
	open := func(path string, options runner.Options) error {
		other, err := runner.Open(ctx, path, options)
		if err == nil {
			err = other.Close()
		}
		return err
	}
	openDB := func(path string) error {
		handle, err := runner.OpenDB(ctx, path)
		if err == nil {
			err = handle.Close()
		}
		return err
	}
	inApplication := func(table string, options runner.Options) error {
		handle, err := runner.OpenDB(ctx, filepath.Join(t.TempDir(), "app.db"))
		testkit.NoError(t, err)
		defer handle.Close()
		_, err = handle.ExecContext(ctx, "CREATE TABLE "+table+" (title TEXT)")
		testkit.NoError(t, err)
		_, err = runner.New(ctx, handle, options)
		return err
	}
	backup := func(to string) error { _, err := admin.Backup(ctx, r, admin.BackupOptions{Path: to}); return err }
	return map[string]func() error{
		"admin.Backup ErrConflict":   func() error { return backup(admin.Path(r)) },
		"admin.Backup ErrInvalid":    func() error { return backup("") },
		"admin.Backup ErrNoDatabase": func() error { return backup(missing) },
		"admin.Backup ErrPermission": func() error { return backup(filepath.Join(admin.Path(r), "copy.db")) },
		"New ErrConflict":            func() error { return inApplication("runner_tasks", runner.Options{}) },
		"New ErrInvalid":             func() error { _, err := runner.New(ctx, nil, runner.Options{}); return err },
		"New ErrSchema":              func() error { return inApplication("notes", runner.Options{ReadOnly: true}) },
		"Open ErrInvalid":            func() error { return open(":memory:", runner.Options{}) },
		"Open ErrNoDatabase":         func() error { return open(missing, runner.Options{}) },
		"Open ErrSchema":             func() error { return open(text, runner.Options{}) },
		"OpenDB ErrInvalid":          func() error { return openDB(":memory:") },
		"OpenDB ErrNoDatabase":       func() error { return openDB(missing) },
		"OpenDB ErrSchema":           func() error { return openDB(text) },
	}
}

// attemptKinds returns, by name, calls that a handler makes during an attempt,
// and calls of Runner.Work. Each call returns its error.
func attemptKinds(t *testing.T) map[string]func() error {
	inAttempt := func(do func(ctx context.Context, r *runner.Runner) error) (err error) {
		r := runnerkit.Open(t, runner.Options{})
		r.Register(quick.Handler(func(ctx context.Context, _ any) error { err = do(ctx, r); return nil }))
		runnerkit.Enqueue(t, r, quick.With(nil))
		runnerkit.Drain(t, r)
		return err
	}
	one := func(context.Context) (int, error) { return 1, nil }
	return map[string]func() error{
		"FinishTx ErrInvalid": func() error { return runner.FinishTx(t.Context(), nil, nil) },
		"Sleep ErrInvalid": func() error {
			return inAttempt(func(ctx context.Context, _ *runner.Runner) error { return runner.Sleep(ctx, "", time.Second) })
		},
		"Step ErrInvalid": func() error {
			return inAttempt(func(ctx context.Context, _ *runner.Runner) error { _, err := runner.Step(ctx, "", one); return err })
		},
		"StepTx ErrInvalid": func() error {
			return inAttempt(func(ctx context.Context, _ *runner.Runner) error {
				_, err := runner.StepTx(ctx, nil, "ship", one)
				return err
			})
		},
		"Work ErrConflict": func() error {
			return inAttempt(func(ctx context.Context, r *runner.Runner) error { return r.Work(ctx, runner.WorkOptions{}) })
		},
		"Work ErrInvalid": func() error { return runnerkit.Open(t, runner.Options{}).Work(t.Context(), runner.WorkOptions{}) },
	}
}
