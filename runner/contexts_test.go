package runner_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"reflect"
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

// contextCall calls a method with a context. If the method writes, it waits for
// the write lock.
type contextCall func(ctx context.Context, r *runner.Runner) error

// contextCalls has a call of each method of Runner that takes a context, and of
// the functions that open a database.
func contextCalls(t *testing.T) map[string]contextCall {
	all := map[string]contextCall{}
	for _, calls := range []map[string]contextCall{handleCalls(t), readCalls(t), writeCalls()} {
		maps.Copy(all, calls)
	}
	return all
}

// handleCalls has the calls that open a database, and the calls that run in a
// transaction of the caller.
func handleCalls(t *testing.T) map[string]contextCall {
	one := []int64{1}
	return map[string]contextCall{
		"Open": func(ctx context.Context, r *runner.Runner) error {
			other, err := runner.Open(ctx, filepath.Join(t.TempDir(), "new.db"), runner.Options{})
			if err == nil {
				err = other.Close()
			}
			return err
		},
		"New": func(ctx context.Context, r *runner.Runner) error {
			handle, err := runner.OpenDB(context.Background(), admin.Path(r))
			if err != nil {
				return err
			}
			defer handle.Close()
			other, err := runner.New(ctx, handle, runner.Options{BusyTimeout: time.Minute})
			if err == nil {
				err = other.Close()
			}
			return err
		},
		"OpenDB": func(ctx context.Context, r *runner.Runner) error {
			handle, err := runner.OpenDB(ctx, admin.Path(r))
			if err == nil {
				err = handle.Close()
			}
			return err
		},
		"EnqueueManyTx": func(ctx context.Context, r *runner.Runner) error {
			return inDeferredTx(r, func(tx *sql.Tx) error { _, err := r.EnqueueManyTx(ctx, tx, quick.With(nil)); return err })
		},
		"CancelTx": func(ctx context.Context, r *runner.Runner) error {
			return inDeferredTx(r, func(tx *sql.Tx) error { _, err := r.CancelTx(ctx, tx, one, runner.CancelOptions{}); return err })
		},
		"EnqueueTx": func(ctx context.Context, r *runner.Runner) error {
			return inDeferredTx(r, func(tx *sql.Tx) error { _, err := r.EnqueueTx(ctx, tx, quick.With(nil)); return err })
		},
		"GetTx": func(ctx context.Context, r *runner.Runner) error {
			return inDeferredTx(r, func(tx *sql.Tx) error { _, err := r.GetTx(ctx, tx, 1); return err })
		},
		"RetryTx": func(ctx context.Context, r *runner.Runner) error {
			return inDeferredTx(r, func(tx *sql.Tx) error { _, err := r.RetryTx(ctx, tx, one, runner.RetryOptions{}); return err })
		},
	}
}

// readCalls has the calls that only read.
func readCalls(t *testing.T) map[string]contextCall {
	return map[string]contextCall{
		"All": func(ctx context.Context, r *runner.Runner) error {
			for _, err := range r.All(ctx, jobs.Filter{}) {
				return err
			}
			return nil
		},
		"Attempts": func(ctx context.Context, r *runner.Runner) error {
			_, err := admin.Attempts(ctx, r, jobs.Task{ID: 1})
			return err
		},
		"Backup": func(ctx context.Context, r *runner.Runner) error {
			_, err := admin.Backup(ctx, r, admin.BackupOptions{Path: filepath.Join(t.TempDir(), "copy.db")})
			return err
		},
		"BackupTo": func(ctx context.Context, r *runner.Runner) error {
			_, err := admin.Backup(ctx, r, admin.BackupOptions{Writer: io.Discard})
			return err
		},
		"Count": func(ctx context.Context, r *runner.Runner) error {
			_, _, err := r.Count(ctx, jobs.Filter{})
			return err
		},
		"Dependencies": func(ctx context.Context, r *runner.Runner) error {
			_, _, err := admin.Dependencies(ctx, r, 1, 10)
			return err
		},
		"Get":      func(ctx context.Context, r *runner.Runner) error { _, err := r.Get(ctx, 1); return err },
		"Schedule": func(ctx context.Context, r *runner.Runner) error { return errorOf(admin.Schedule(ctx, r, "morning")) },
		"Limits":   func(ctx context.Context, r *runner.Runner) error { _, err := admin.Limits(ctx, r); return err },
		"List":     func(ctx context.Context, r *runner.Runner) error { return errorOf(r.List(ctx, jobs.Filter{})) },
		"Output": func(ctx context.Context, r *runner.Runner) error {
			_, err := admin.Output(ctx, r, admin.Attempt{TaskID: 1}, 0, 1)
			return err
		},
		"Pauses":    func(ctx context.Context, r *runner.Runner) error { _, err := admin.Pauses(ctx, r); return err },
		"Queues":    func(ctx context.Context, r *runner.Runner) error { _, err := admin.Queues(ctx, r); return err },
		"Schedules": func(ctx context.Context, r *runner.Runner) error { _, err := admin.Schedules(ctx, r); return err },
		"Steps":     func(ctx context.Context, r *runner.Runner) error { _, err := admin.Steps(ctx, r, 1); return err },
		"Why": func(ctx context.Context, r *runner.Runner) error {
			_, err := admin.Why(ctx, r, jobs.Task{ID: 1, State: jobs.Pending})
			return err
		},
		"Workers": func(ctx context.Context, r *runner.Runner) error { _, err := admin.Workers(ctx, r); return err },
	}
}

// writeCalls has the calls that write or that wait for something.
func writeCalls() map[string]contextCall {
	limit := admin.Limit{Target: admin.Target{Kind: admin.QueueTarget, Name: "mail"}, Running: 2}
	schedule := jobs.Schedule{Name: "night", Cron: "@daily", Spec: quick.With(nil)}
	one := []int64{1}
	return map[string]contextCall{
		"EnqueueMany": func(ctx context.Context, r *runner.Runner) error { return errorOf(r.EnqueueMany(ctx, quick.With(nil))) },
		"AddCursor":   func(ctx context.Context, r *runner.Runner) error { return admin.AddCursor(ctx, r, "audit") },
		"ApplySchedules": func(ctx context.Context, r *runner.Runner) error {
			_, err := admin.ApplySchedules(ctx, r, []jobs.Schedule{schedule}, admin.ApplyOptions{})
			return err
		},
		"Await": func(ctx context.Context, r *runner.Runner) error { _, err := r.Await(ctx, 1); return err },
		"Cancel": func(ctx context.Context, r *runner.Runner) error {
			return errorOf(r.Cancel(ctx, one, runner.CancelOptions{}))
		},
		"Changes": func(ctx context.Context, r *runner.Runner) error {
			return admin.Changes(ctx, r, func() (bool, error) { return false, nil })
		},
		"Delete": func(ctx context.Context, r *runner.Runner) error { _, err := r.Delete(ctx, one); return err },
		"Edit": func(ctx context.Context, r *runner.Runner) error {
			_, err := r.Edit(ctx, 1, jobs.Metadata(map[string]string{"seen": "yes"}))
			return err
		},
		"Enqueue": func(ctx context.Context, r *runner.Runner) error { return errorOf(r.Enqueue(ctx, quick.With(nil))) },
		"EnqueueSeq": func(ctx context.Context, r *runner.Runner) error {
			_, err := r.EnqueueSeq(ctx, slices.Values([]jobs.Spec{quick.With(nil)}))
			return err
		},
		"ConsumeFinished": func(ctx context.Context, r *runner.Runner) error {
			return r.ConsumeFinished(ctx, "audit", func(context.Context, jobs.Task) error { return nil })
		},
		"OnTick": func(ctx context.Context, r *runner.Runner) error {
			ticked := schedule
			ticked.Name = "ticked"
			return r.OnTick(ctx, ticked, hourOf)
		},
		"PauseQueues": func(ctx context.Context, r *runner.Runner) error {
			return admin.PauseQueues(ctx, r, []string{"mail"}, admin.PauseOptions{})
		},
		"PauseQueues for a time": func(ctx context.Context, r *runner.Runner) error {
			return admin.PauseQueues(ctx, r, []string{"mail"}, admin.PauseOptions{For: time.Hour})
		},
		"PauseSchedule": func(ctx context.Context, r *runner.Runner) error { return admin.PauseSchedule(ctx, r, "morning") },
		"RemoveCursor":  func(ctx context.Context, r *runner.Runner) error { return admin.RemoveCursor(ctx, r, "other") },
		"RemoveLimit":   func(ctx context.Context, r *runner.Runner) error { return admin.RemoveLimit(ctx, r, limit.Target) },
		"RemoveSchedule": func(ctx context.Context, r *runner.Runner) error {
			return r.RemoveSchedule(ctx, "morning")
		},
		"Pause": func(ctx context.Context, r *runner.Runner) error {
			return errorOf(r.Pause(ctx, one, runner.PauseOptions{}))
		},
		"Resume":         func(ctx context.Context, r *runner.Runner) error { _, err := r.Resume(ctx, one); return err },
		"ResumeQueues":   func(ctx context.Context, r *runner.Runner) error { return admin.ResumeQueues(ctx, r, "paused") },
		"ResumeSchedule": func(ctx context.Context, r *runner.Runner) error { return admin.ResumeSchedule(ctx, r, "morning") },
		"Retry": func(ctx context.Context, r *runner.Runner) error {
			return errorOf(r.Retry(ctx, one, runner.RetryOptions{}))
		},
		"RunSchedule": func(ctx context.Context, r *runner.Runner) error {
			return errorOf(admin.RunSchedule(ctx, r, "morning"))
		},
		"SetSchedule": func(ctx context.Context, r *runner.Runner) error { return r.SetSchedule(ctx, schedule) },
		"SetLimit":    func(ctx context.Context, r *runner.Runner) error { return admin.SetLimit(ctx, r, limit) },
		"Watch": func(ctx context.Context, r *runner.Runner) error {
			for task, err := range r.Watch(ctx, jobs.Filter{}) {
				if err != nil || task.State.Finished() { // no task finishes
					return err
				}
			}
			return nil
		},
		"Work": func(ctx context.Context, r *runner.Runner) error { return r.Work(ctx, runner.WorkOptions{Grace: -1}) },
	}
}

// contextRunner opens a database with a task and a schedule.
func contextRunner(t *testing.T) *runner.Runner {
	r := runnerkit.Open(t, runner.Options{BusyTimeout: lockedFor})
	r.Register(quick.Handler(func(context.Context, any) error { return nil }))
	runnerkit.Enqueue(t, r, quick.With(nil, jobs.In(time.Hour)))
	testkit.NoError(t, r.SetSchedule(t.Context(), jobs.Schedule{Name: "morning", Cron: "@daily", Spec: quick.With(nil)}))
	return r
}

func TestTableOfContextsIsComplete(t *testing.T) {
	calls := contextCalls(t)
	of := reflect.TypeFor[*runner.Runner]()
	for method := range of.Methods() {
		if method.Type.NumIn() > 1 && method.Type.In(1) == reflect.TypeFor[context.Context]() && calls[method.Name] == nil {
			t.Errorf("got no call of %s in contextCalls, want one", method.Name)
		}
	}
}

// A call that doesn't notice the end of its context waits for lockedFor. One
// that notices it returns within slowEnd, even on a very busy machine.
const (
	lockedFor = time.Hour
	slowEnd   = time.Minute
)

func TestCallsWithEndedContextReturnItsCause(t *testing.T) {
	cause := errors.New("the caller gave up")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	r := contextRunner(t)
	for name, call := range contextCalls(t) {
		began := time.Now()
		err := call(ctx, r)
		if took := time.Since(began); took > slowEnd {
			t.Errorf("%s took %v, want less than %v", name, took, slowEnd)
		}
		if name == "Work" { // it returns nil when its context ends
			testkit.NoError(t, err)
		} else if !errors.Is(err, cause) {
			t.Errorf("%s: got %v, want %v", name, err, cause)
		}
	}
}

// TestNoCallOutlastsItsContext ends the context of each call while another
// process holds the write lock. Each call must return soon. Reads do not wait
// for the lock, so they return no error.
func TestNoCallOutlastsItsContext(t *testing.T) {
	t.Parallel()
	cause := errors.New("the caller gave up")
	reads := []string{"Open", "OpenDB", "All", "Attempts", "Backup", "BackupTo", "Count", "Dependencies", "Fence",
		"Get", "Schedule", "GetTx", "Holds", "Limits", "List", "New", "Output", "Pauses", "Queues",
		"ScheduleRuns", "Schedules", "Steps", "Why", "Workers"}
	for name, call := range contextCalls(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := contextRunner(t)
			release := lockFile(t, r)
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(100*time.Millisecond, func() { cancel(cause) })
			began := time.Now()
			err := call(ctx, r)
			if took := time.Since(began); took > slowEnd {
				t.Errorf("took %v (%v), want less than %v", took, err, slowEnd)
			}
			release()
			switch {
			case strings.HasSuffix(name, "Tx"): // ErrBusy is valid: these calls use a database handle with a busy timeout of its own
				if err != nil && !errors.Is(err, jobs.ErrBusy) && !errors.Is(err, cause) {
					t.Errorf("got %v, want nil, %v or %v", err, jobs.ErrBusy, cause)
				}
			case slices.Contains(reads, name), name == "Work":
				if err != nil && !errors.Is(err, cause) && !errors.Is(err, jobs.ErrLost) {
					t.Errorf("got %v, want nil", err)
				}
			case !errors.Is(err, cause):
				t.Error(fmt.Errorf("got %w, want %w", err, cause))
			}
		})
	}
}

// attemptCalls has a call of each function of this package that needs the
// context of an attempt and returns an error.
func attemptCalls() map[string]contextCall {
	one := func(context.Context) (int, error) { return 1, nil }
	return map[string]contextCall{
		"FinishTx": func(ctx context.Context, r *runner.Runner) error {
			return inDeferredTx(r, func(tx *sql.Tx) error { return runner.FinishTx(ctx, tx, nil) })
		},
		"Sleep": func(ctx context.Context, r *runner.Runner) error { return runner.Sleep(ctx, "pause", time.Hour) },
		"Step": func(ctx context.Context, r *runner.Runner) error {
			_, err := runner.Step(ctx, "charge", one)
			return err
		},
		"StepTx": func(ctx context.Context, r *runner.Runner) error {
			return inDeferredTx(r, func(tx *sql.Tx) error { _, err := runner.StepTx(ctx, tx, "ship", one); return err })
		},
		"Upstream": func(ctx context.Context, r *runner.Runner) error { _, err := runner.Upstream(ctx); return err },
	}
}

// TestNoCallOfHandlerOutlastsItsContext makes the calls in an attempt: with a
// context that has ended, and with one that ends while another process holds
// the write lock. Upstream only reads, so it does not wait for the lock.
func TestNoCallOfHandlerOutlastsItsContext(t *testing.T) {
	t.Parallel()
	cause := errors.New("the caller gave up")
	for name, call := range attemptCalls() {
		for _, during := range []bool{false, true} {
			t.Run(fmt.Sprint(name, " during a lock ", during), func(t *testing.T) {
				t.Parallel()
				r := runnerkit.Open(t, runner.Options{BusyTimeout: lockedFor})
				var took time.Duration
				var err error
				r.Register(quick.Handler(func(ctx context.Context, _ any) error {
					ctx, cancel := context.WithCancelCause(ctx)
					defer cancel(nil)
					if during {
						defer lockFile(t, r)()
						time.AfterFunc(100*time.Millisecond, func() { cancel(cause) })
					} else {
						cancel(cause)
					}
					began := time.Now()
					err = call(ctx, r)
					took = time.Since(began)
					return nil
				}))
				runnerkit.Enqueue(t, r, quick.With(nil))
				runnerkit.Drain(t, r, runner.WorkOptions{Grace: -1})
				if took > slowEnd {
					t.Errorf("took %v (%v), want less than %v", took, err, slowEnd)
				}
				// A call in a transaction may return ErrBusy, because the
				// transaction uses a database handle with a busy timeout of its
				// own.
				busy := strings.HasSuffix(name, "Tx") && errors.Is(err, jobs.ErrBusy)
				if !errors.Is(err, cause) && !(during && (busy || name == "Upstream" && err == nil)) {
					t.Errorf("got %v, want %v", err, cause)
				}
			})
		}
	}
}

// lockFile takes the write lock of the file as another process does. It returns
// a function that releases the lock.
func lockFile(t *testing.T, r *runner.Runner) (release func()) {
	t.Helper()
	other, err := sql.Open("sqlite", admin.Path(r))
	testkit.NoError(t, err)
	other.SetMaxOpenConns(1)
	_, err = other.Exec("PRAGMA busy_timeout = 10000; BEGIN IMMEDIATE")
	testkit.NoError(t, err)
	return func() {
		_, err := other.Exec("ROLLBACK")
		testkit.NoError(t, err)
		testkit.NoError(t, other.Close())
	}
}

// inDeferredTx calls do with a transaction that has not taken the write lock,
// because it is deferred.
func inDeferredTx(r *runner.Runner, do func(tx *sql.Tx) error) error {
	handle, err := runner.OpenDB(context.Background(), admin.Path(r))
	if err != nil {
		return err
	}
	defer handle.Close()
	tx, err := handle.BeginTx(context.Background(), &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	return do(tx)
}

func errorOf[T any](_ T, err error) error { return err }
