package runner_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"example.com/runner/internal/testkit"
	"example.com/runner/internal/testkit/runnerkit"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// TestInvalidValuesAreRefusedAtOnce checks that calls reject values that can only be mistakes of the program.
func TestInvalidValuesAreRefusedAtOnce(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	for name, call := range map[string]func() error{
		"negative concurrency": func() error {
			_, err := runner.Open(t.Context(), r.Path(), runner.Options{Concurrency: -3})
			return err
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
			_, err := r.List(t.Context(), jobs.Filter{States: []jobs.State{"done"}}, runner.Page{})
			return err
		},
		"All with an unknown state": func() error {
			for _, err := range r.All(t.Context(), jobs.Filter{States: []jobs.State{"done"}}, runner.Page{}) {
				return err
			}
			return nil
		},
		"IDs with an unknown state": func() error {
			_, err := r.IDs(t.Context(), jobs.Filter{States: []jobs.State{jobs.Completed, "done"}}, runner.Page{})
			return err
		},
		"Count with a state of attempts": func() error {
			_, err := r.Count(t.Context(), jobs.Filter{States: []jobs.State{jobs.Snoozed}})
			return err
		},
		"CountByState with an empty state": func() error {
			_, err := r.CountByState(t.Context(), jobs.Filter{States: []jobs.State{""}})
			return err
		},
		"List with a negative limit": func() error {
			_, err := r.List(t.Context(), jobs.Filter{}, runner.Page{Limit: -1})
			return err
		},
		"empty unique key": func() error {
			_, err := r.Enqueue(t.Context(), quick.With(nil, jobs.Unique("")))
			return err
		},
		"empty unique key of a command": func() error {
			_, err := r.Enqueue(t.Context(), jobs.Shell("true").With(jobs.UniqueReplace("")))
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
	panics("nil middleware", "a middleware is nil", func() { r.Use(nil) })
	panics("nil enqueue middleware", "a middleware is nil", func() { r.UseEnqueue(nil) })
	mail := jobs.Define[string]("mail").Handler(func(context.Context, string) error { return nil })
	panics("alias of itself", `job "mail" is registered twice`, func() { r.Register(mail.Alias("mail")) })
	panics("alias twice", `job "a" is registered twice`, func() { r.Register(jobs.Handler{Job: "b", Run: mail.Run}.Alias("a", "a")) })
	panics("invalid alias", `register "": no job name`, func() { r.Register(jobs.Handler{Job: "c", Run: mail.Run}.Alias("")) })
	r.Register(quick.Handler(func(context.Context, any) error {
		panics("Register", "Register while Work runs", func() { r.Register(runner.Commands(runner.CommandOptions{})) })
		panics("Use", "Use while Work runs", func() { r.Use() })
		panics("UseEnqueue", "UseEnqueue while Work runs", func() { r.UseEnqueue() })
		return nil
	}))
	runnerkit.Enqueue(t, r, quick.With(nil))
	runnerkit.Drain(t, r)
}

func TestCloseStopsWork(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{Grace: -1})
	began := make(chan struct{})
	r.Register(quick.Handler(func(ctx context.Context, _ any) error {
		close(began)
		<-ctx.Done()
		return ctx.Err()
	}))
	task := runnerkit.Enqueue(t, r, quick.With(nil))
	worked := make(chan error, 1)
	go func() { worked <- r.Work(context.Background()) }()
	<-began
	testkit.NoError(t, r.Close())
	select {
	case err := <-worked:
		testkit.NoError(t, err)
	default:
		t.Error("got a Work that runs after Close, want it to have returned")
	}
	testkit.ErrorIs(t, r.Work(t.Context()), jobs.ErrClosed)
	again, err := runner.Open(t.Context(), r.Path(), runner.Options{})
	testkit.NoError(t, err)
	defer again.Close()
	testkit.Equal(t, "state", runnerkit.Get(t, again, task.ID).State, jobs.Pending)
}
