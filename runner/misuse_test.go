package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/commands"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// TestInvalidValuesAreRefusedAtOnce checks that calls reject values that can
// only be mistakes of the program.
func TestInvalidValuesAreRefusedAtOnce(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	for name, call := range map[string]func() error{
		"negative concurrency": func() error {
			return r.Work(t.Context(), runner.WorkOptions{Concurrency: -3})
		},
		"database in memory": func() error {
			_, err := runner.Open(t.Context(), ":memory:", runner.Options{})
			return err
		},
		"nil handle": func() error {
			_, err := runner.New(t.Context(), nil, runner.Options{})
			return err
		},
		"nil transaction": func() error {
			_, err := r.EnqueueTx(t.Context(), nil, quick.With(nil))
			return err
		},
		"List with an unknown state": func() error {
			_, err := r.List(t.Context(), jobs.Filter{States: []jobs.State{"done"}})
			return err
		},
		"All with an unknown state": func() error {
			for _, err := range r.All(t.Context(), jobs.Filter{States: []jobs.State{"done"}}) {
				return err
			}
			return nil
		},
		"Count with a state of attempts": func() error {
			_, _, err := r.Count(t.Context(), jobs.Filter{States: []jobs.State{taskspec.Snoozed}})
			return err
		},
		"Count with an empty state": func() error {
			_, _, err := r.Count(t.Context(), jobs.Filter{States: []jobs.State{""}})
			return err
		},
		"List with a negative limit": func() error {
			_, err := r.List(t.Context(), jobs.Filter{Limit: -1})
			return err
		},
		"nil option":   func() error { _, err := r.Enqueue(t.Context(), quick.With(nil, nil)); return err },
		"nil sequence": func() error { _, err := r.EnqueueSeq(t.Context(), nil); return err },
		"nil check":    func() error { return admin.Changes(t.Context(), r, nil) },
		"nil writer":   func() error { _, err := admin.Backup(t.Context(), r, admin.BackupOptions{}); return err },
		"negative retry": func() error {
			_, err := r.Retry(t.Context(), []int64{1}, runner.RetryOptions{In: -time.Second})
			return err
		},
		"negative retry of dependents": func() error {
			_, err := r.Retry(t.Context(), []int64{1}, runner.RetryOptions{In: -time.Second, Dependents: true})
			return err
		},
		"empty unique key": func() error {
			_, err := r.Enqueue(t.Context(), quick.With(nil, jobs.Unique("")))
			return err
		},
		"empty unique key of a command": func() error {
			_, err := r.Enqueue(t.Context(), jobs.Command(command.Shell("true"), jobs.UniqueWith("", jobs.UniqueOptions{Replace: true})))
			return err
		},
	} {
		if err := call(); err == nil {
			t.Errorf("%s: got no error, want %v", name, jobs.ErrInvalid)
		} else {
			testkit.ErrorIs(t, err, jobs.ErrInvalid)
		}
	}
}

func TestInvalidOptionsAreRefusedAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	for name, options := range map[string]runner.Options{
		"BusyTimeout":     {BusyTimeout: -1},
		"unknown level 9": {Sync: 9},
		"WriteEvery":      {Sync: runner.SyncFlash, WriteEvery: -1},
		"prefix":          {Prefix: "a b"},
	} {
		r, err := runner.Open(t.Context(), path, options)
		if err == nil {
			testkit.NoError(t, r.Close())
		}
		if !errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want %v with that name", name, err, jobs.ErrInvalid)
		}
		if _, err := os.Stat(path); err == nil {
			t.Fatalf("%s: got a new file, want none", name)
		}
		if e, ok := errors.AsType[*jobs.Error](err); ok && options.Sync != 0 && options.WriteEvery == 0 {
			testkit.Equal(t, "hint", e.Hint, "SyncFull, SyncNormal or SyncFlash")
		}
	}
	r := runnerkit.Open(t, runner.Options{})
	r.Register(quick.Handler(runs))
	for name, options := range map[string]runner.WorkOptions{
		"lease":            {Lease: 1},
		"Max of queue":     {Queues: []jobs.QueueMax{{Name: "mail", Max: -1}}},
		"queue mail comes": {Queues: []jobs.QueueMax{{Name: "mail"}, {Name: "mail"}}},
		"queue":            {Queues: []jobs.QueueMax{{Name: ""}}},
	} {
		if err := r.Work(t.Context(), options); !errors.Is(err, jobs.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want %v with that name", name, err, jobs.ErrInvalid)
		}
	}
}

// TestURIsAreNoPaths checks that Open and OpenDB reject names that other
// programs read as an address, and keep a password to themselves.
func TestURIsAreNoPaths(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, path := range []string{"file::memory:", "file:x?mode=memory", "file:x.db?cache=shared", "file:x.db", ":memory:?cache=shared",
		"host=h user=ann password=s3cret", " password = s3cret", "dbname=x", "mysql://ann:s3cret@h/x", "sqlite:///x.db",
		"sqlite:x.db", "FILE:x.db", "PGPASSWORD=s3cret", "Server=h;Database=x;User Id=ann;Password=s3cret", `"postgres://ann:s3cret@h/x"`,
		" postgres://ann:s3cret@h/x", "postgres:ann:s3cret@h/x", "jdbc:postgresql://h/x?password=s3cret"} {
		r, err := runner.Open(t.Context(), path, runner.Options{})
		if err == nil {
			testkit.NoError(t, r.Close())
		}
		if !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("Open(%q): got %v, want %v", path, err, jobs.ErrInvalid)
		}
		if strings.Contains(err.Error(), "s3cret") {
			t.Errorf("Open(%q): got %v, want no password", path, err)
		}
		handle, err := runner.OpenDB(t.Context(), path)
		if err == nil {
			testkit.NoError(t, handle.Close())
		}
		if !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("OpenDB(%q): got %v, want %v", path, err, jobs.ErrInvalid)
		}
	}
	files, err := os.ReadDir(".")
	testkit.NoError(t, err)
	testkit.Len(t, "new files", files, 0)
}

func TestStepWithoutFunctionIsRefused(t *testing.T) {
	_, err := runner.Step[int](t.Context(), "charge", nil)
	testkit.ErrorIs(t, err, jobs.ErrInvalid)
	_, err = runner.StepTx[int](t.Context(), nil, "charge", nil)
	testkit.ErrorIs(t, err, jobs.ErrInvalid)
}

func TestProgrammingErrorsPanic(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	panics := func(what, want string, call func()) {
		t.Helper()
		defer func() {
			if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
				t.Errorf("%s: got panic %q, want one with %q", what, got, want)
			}
		}()
		call()
	}
	panics("nil function", "handler of quick is nil", func() { quick.Handler(nil) })
	panics("nil bulk function", "handler of quick is nil", func() { quick.BulkHandler(3, nil) })
	panics("nil function with a result", "handler of sum is nil", func() { jobs.DefineResult[int, int]("sum").Handler(nil) })
	panics("nil middleware", "a middleware is nil", func() { r.Use(nil) })
	panics("nil enqueue middleware", "a middleware is nil", func() { r.UseEnqueue(nil) })
	mail := jobs.Define[string]("mail").Handler(func(context.Context, string) error { return nil })
	panics("a job twice", `job "mail" is registered twice`, func() { r.Register(mail, mail) })
	panics("no name", `register "": no job name`, func() { r.Register(jobs.Handler{Run: mail.Run}) })
	panics("wait without a bulk", "BulkWait is 1s", func() { r.Register(jobs.Handler{Job: "x", Run: mail.Run, BulkWait: time.Second}) })
	panics("negative wait", "BulkWait is -1s", func() {
		r.Register(jobs.Handler{Job: "x", Run: mail.Run, BulkSize: 2, BulkWait: -time.Second})
	})
	r.Register(quick.Handler(func(context.Context, any) error {
		panics("Register", "Register while Work runs", func() { r.Register(commands.Handler(commands.Options{})) })
		panics("OnTick", "OnTick while Work runs", func() {
			_ = r.OnTick(t.Context(), jobs.Schedule{}, hourOf)
		})
		panics("Use", "Use while Work runs", func() { r.Use() })
		panics("UseEnqueue", "UseEnqueue while Work runs", func() { r.UseEnqueue() })
		return nil
	}))
	runnerkit.Enqueue(t, r, quick.With(nil))
	runnerkit.Drain(t, r)
}

func TestCloseStopsWork(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	began := make(chan struct{})
	r.Register(quick.Handler(func(ctx context.Context, _ any) error {
		close(began)
		<-ctx.Done()
		return ctx.Err()
	}))
	task := runnerkit.Enqueue(t, r, quick.With(nil))
	worked := make(chan error, 1)
	go func() { worked <- r.Work(context.Background(), runner.WorkOptions{Grace: -1}) }()
	<-began
	testkit.NoError(t, r.Close())
	select {
	case err := <-worked:
		testkit.NoError(t, err)
	default:
		t.Error("got a Work that runs after Close, want it to have returned")
	}
	testkit.ErrorIs(t, r.Work(t.Context(), runner.WorkOptions{Grace: -1}), jobs.ErrClosed)
	again, err := runner.Open(t.Context(), admin.Path(r), runner.Options{})
	testkit.NoError(t, err)
	defer again.Close()
	testkit.Equal(t, "state", runnerkit.Get(t, again, task.ID).State, jobs.Pending)
}
