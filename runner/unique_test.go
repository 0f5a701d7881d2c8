package runner_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner/runnertest"
)

func TestUniqueKeyUsesArgumentsBeforeMiddleware(t *testing.T) {
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
		task, err := r.Enqueue(t.Context(), jobs.NewSpec("f", jobs.UniqueWith("", jobs.UniqueOptions{Args: true})))
		if err != nil || task.Kept != want {
			t.Errorf("call %d: got kept %v and error %v, want %v and none", i, task.Kept, err, want)
		}
	}
}

// The middleware sees the key as it was given, so it can give each tenant keys
// of its own.
func TestMiddlewareChangesUniqueKey(t *testing.T) {
	r := runnertest.New(t)
	r.UseEnqueue(func(_ context.Context, spec *jobs.Spec) error {
		spec.UniqueKey = "acme " + spec.UniqueKey
		return nil
	})
	task, err := r.Enqueue(t.Context(), jobs.NewSpec("f", jobs.Unique("k")))
	if want := "f#acme k"; err != nil || task.UniqueKey != want {
		t.Errorf("got key %q and error %v, want %q", task.UniqueKey, err, want)
	}
}

func TestOptionsOfUniqueKeysAreChecked(t *testing.T) {
	r := runnertest.New(t)
	long := strings.Repeat("k", taskspec.MaxText)
	for name, options := range map[string][]jobs.Option{
		"a time without a key":           {jobs.UniqueWith("", jobs.UniqueOptions{For: time.Hour})},
		"states without a key":           {jobs.UniqueWith("", jobs.UniqueOptions{States: []jobs.State{jobs.Completed}})},
		"an unfinished state":            {jobs.UniqueWith("k", jobs.UniqueOptions{States: []jobs.State{jobs.Completed, jobs.Running}})},
		"a negative time":                {jobs.UniqueWith("k", jobs.UniqueOptions{For: -1})},
		"a long key with a hash of args": {jobs.UniqueWith(long, jobs.UniqueOptions{Args: true})},
		"an empty key":                   {jobs.Unique("")},
		"a long key with its job":        {jobs.Unique(long[1:])},
	} {
		if _, err := r.Enqueue(t.Context(), jobs.NewSpec("f", options...)); !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("%s: got error %v, want %v", name, err, jobs.ErrInvalid)
		}
	}
	keyed := jobs.NewSpec("f", jobs.UniqueWith("", jobs.UniqueOptions{Args: true, For: time.Hour}))
	schedule := jobs.Schedule{Name: "s", Cron: "@daily", Spec: keyed}
	if err := r.SetSchedule(t.Context(), schedule); !errors.Is(err, jobs.ErrInvalid) {
		t.Errorf("schedule: got error %v, want %v", err, jobs.ErrInvalid)
	}
	for _, longest := range []jobs.Spec{
		jobs.NewSpec("f", jobs.UniqueWith(long[:165], jobs.UniqueOptions{Args: true})),
		jobs.NewSpec("f", jobs.Unique(long[:198])),
		jobs.NewSpec("f", jobs.UniqueWith(long, jobs.UniqueOptions{Global: true})),
		jobs.Command(command.Shell("true"), jobs.Unique(long)),
	} {
		if task, err := r.Enqueue(t.Context(), longest); err != nil || len(task.UniqueKey) != taskspec.MaxText {
			t.Errorf("the longest key: got %d bytes and error %v, want %d", len(task.UniqueKey), err, taskspec.MaxText)
		}
	}
}

// The receipt is neither dropped nor answered with the welcome mail.
func TestKeyOfAnotherJobKeepsNoTaskOut(t *testing.T) {
	r := runnertest.New(t)
	welcome, receipt := jobs.Define[string]("mail"), jobs.Define[string]("mail:welcome")
	for _, c := range []struct {
		spec jobs.Spec
		key  string
		kept bool
	}{
		{welcome.With("", jobs.Unique("user-42")), "mail#user-42", false},
		{receipt.With("", jobs.Unique("user-42")), "mail:welcome#user-42", false},
		{welcome.With("", jobs.Unique("welcome:user-42")), "mail#welcome:user-42", false},
		{jobs.Command(command.Shell("true"), jobs.Unique("user-42")), "user-42", false},
		{welcome.With("", jobs.Unique("user-42")), "mail#user-42", true},
		{welcome.With("", jobs.Unique("mail#user-42")), "mail#user-42", true},
		{receipt.With("", jobs.UniqueWith("user-42", jobs.UniqueOptions{Global: true})), "user-42", true},
		{receipt.With("", jobs.UniqueWith("all", jobs.UniqueOptions{Global: true})), "all", false},
		{welcome.With("", jobs.UniqueWith("all", jobs.UniqueOptions{Global: true})), "all", true},
	} {
		task, err := r.Enqueue(t.Context(), c.spec)
		if err != nil || task.UniqueKey != c.key || task.Kept != c.kept {
			t.Errorf("%s %q: got key %q, kept %v and error %v, want %q and %v", c.spec.Job, c.spec.UniqueKey, task.UniqueKey,
				task.Kept, err, c.key, c.kept)
		}
	}
}

// A function that enqueues itself under its own key goes on with
// UntilStart.
func TestFunctionEnqueuesItselfUnderItsOwnKey(t *testing.T) {
	r := runnertest.New(t)
	job := jobs.Define[int]("again")
	r.Register(job.Handler(func(ctx context.Context, n int) error {
		if n == 3 {
			return nil
		}
		_, err := r.Enqueue(ctx, job.With(n+1, jobs.UniqueWith("k", jobs.UniqueOptions{UntilStart: true})))
		return err
	}))
	if _, err := r.Enqueue(t.Context(), job.With(1, jobs.UniqueWith("k", jobs.UniqueOptions{UntilStart: true}))); err != nil {
		t.Fatal(err)
	}
	runnertest.RunDue(t, r)
	if n, _, err := r.Count(t.Context(), jobs.Filter{States: []jobs.State{jobs.Completed}}); err != nil || n != 3 {
		t.Errorf("got %d completed tasks and error %v, want 3", n, err)
	}
}
