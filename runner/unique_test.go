package runner_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/runner/runnertest"
)

func TestUniqueArgsUsesArgumentsBeforeMiddleware(t *testing.T) {
	r := runnertest.New(t)
	calls := 0
	r.UseEnqueue(func(_ context.Context, spec *jobs.Spec) error {
		calls++
		// change the arguments to a different text in each call, like
		// middleware that encrypts them
		spec.Args = []byte(`"` + strings.Repeat("x", calls) + `"`)
		return nil
	})
	for i, want := range []bool{false, true} {
		task, err := r.Enqueue(t.Context(), jobs.NewSpec("f", jobs.UniqueArgs()))
		if err != nil || task.Kept != want {
			t.Errorf("call %d: got kept %v and error %v, want %v and none", i, task.Kept, err, want)
		}
	}
}

func TestOptionsOfUniqueKeysAreChecked(t *testing.T) {
	r := runnertest.New(t)
	long := strings.Repeat("k", taskspec.MaxText)
	for name, options := range map[string][]jobs.Option{
		"UniqueFor without a key":        {jobs.UniqueFor(time.Hour)},
		"UniqueStates without a key":     {jobs.UniqueStates(jobs.Completed)},
		"no state":                       {jobs.Unique("k"), jobs.UniqueStates()},
		"an unfinished state":            {jobs.Unique("k"), jobs.UniqueStates(jobs.Completed, jobs.Running)},
		"a negative time":                {jobs.Unique("k"), jobs.UniqueFor(-1)},
		"a long key with a hash of args": {jobs.Unique(long), jobs.UniqueArgs()},
		"an empty key beside UniqueArgs": {jobs.Unique(""), jobs.UniqueArgs()},
	} {
		if _, err := r.Enqueue(t.Context(), jobs.NewSpec("f", options...)); !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("%s: got error %v, want %v", name, err, jobs.ErrInvalid)
		}
	}
	schedule := jobs.Schedule{Name: "s", Cron: "@daily", Spec: jobs.NewSpec("f", jobs.UniqueArgs(), jobs.UniqueFor(time.Hour))}
	if err := r.SetSchedule(t.Context(), schedule); !errors.Is(err, jobs.ErrInvalid) {
		t.Errorf("schedule: got error %v, want %v", err, jobs.ErrInvalid)
	}
	longest := jobs.NewSpec("f", jobs.Unique(long[:130]), jobs.UniqueArgs())
	if _, err := r.Enqueue(t.Context(), longest); err != nil {
		t.Errorf("the longest key: got error %v, want none", err)
	}
}

// A function that enqueues itself under its own key goes on with
// UniqueUntilStart.
func TestFunctionEnqueuesItselfUnderItsOwnKey(t *testing.T) {
	r := runnertest.New(t)
	job := jobs.Define[int]("again")
	r.Register(job.Handler(func(ctx context.Context, n int) error {
		if n == 3 {
			return nil
		}
		_, err := r.Enqueue(ctx, job.With(n+1, jobs.UniqueUntilStart("k")))
		return err
	}))
	if _, err := r.Enqueue(t.Context(), job.With(1, jobs.UniqueUntilStart("k"))); err != nil {
		t.Fatal(err)
	}
	runnertest.RunDue(t, r)
	if n, err := r.Count(t.Context(), jobs.Filter{States: []jobs.State{jobs.Completed}}); err != nil || n != 3 {
		t.Errorf("got %d completed tasks and error %v, want 3", n, err)
	}
}
