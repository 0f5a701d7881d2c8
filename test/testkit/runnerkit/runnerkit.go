// Package runnerkit contains helpers for tests that use a runner.Runner. They
// open databases, and enqueue, run and read tasks. A helper ends the test if it
// fails.
package runnerkit

import (
	"context"

	"strings"
	"sync"
	"testing"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
)

// Open opens a new database in a temporary file. The database is closed when
// the test ends.
func Open(t testing.TB, options runner.Options) *runner.Runner {
	t.Helper()
	return OpenAt(t, newFile(t), options)
}

var newFile = testkit.Template(func(path string) error {
	r, err := runner.Open(context.Background(), path, runner.Options{})
	if err != nil {
		return err
	}
	return r.Close()
})

// OpenAt opens the database at a path or URL. The database is closed when the
// test ends.
func OpenAt(t testing.TB, address string, options runner.Options) *runner.Runner {
	t.Helper()
	return openAt(t.Context(), t, address, options)
}

func openAt(ctx context.Context, t testing.TB, address string, options runner.Options) *runner.Runner {
	t.Helper()
	r, err := runner.Open(ctx, address, options)
	if err != nil {
		t.Fatalf("open %s: %v", address, err)
	}

	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Errorf("close %s: %v", address, err)
		}
	})
	return r
}

// OpenAlone opens a new database as Open does, for a test on fake time in which
// no other process writes the file.
func OpenAlone(t testing.TB, options runner.Options) *runner.Runner {
	t.Helper()
	return openAt(db.Alone(t.Context()), t, newFile(t), options)
}

// Enqueue adds a task.
func Enqueue(t testing.TB, r *runner.Runner, spec jobs.Spec) jobs.Task {
	t.Helper()
	task, err := r.Enqueue(t.Context(), spec)
	if err != nil {
		t.Fatalf("enqueue %+v: %v", spec, err)
	}
	return task
}

// Drain runs a worker until no task is due, with at most one WorkOptions.
func Drain(t testing.TB, r *runner.Runner, options ...runner.WorkOptions) {
	t.Helper()
	o := optional(options)
	o.UntilEmpty = true
	if err := r.Work(t.Context(), o); err != nil {
		t.Fatalf("work until empty: %v", err)
	}
}

// Work runs a worker in the background. The worker stops when the caller calls
// stop or the test ends. It takes at most one WorkOptions.
func Work(t testing.TB, r *runner.Runner, options ...runner.WorkOptions) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background()) // t.Context() would end before the cleanup functions of the test
	done := make(chan error, 1)
	go func() { done <- r.Work(ctx, optional(options)) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("work: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func optional(options []runner.WorkOptions) (o runner.WorkOptions) {
	for _, o = range options {
	}
	return o
}

// Get reads a task.
func Get(t testing.TB, r *runner.Runner, id int64) jobs.Task {
	t.Helper()
	task, err := r.Get(t.Context(), id)
	if err != nil {
		t.Fatalf("get task %d: %v", id, err)
	}
	return task
}

// Output reads the output of the last attempt of a task.
func Output(t testing.TB, r *runner.Runner, id int64) string {
	t.Helper()
	attempts, err := admin.Attempts(t.Context(), r, Get(t, r, id))
	if err != nil || len(attempts) == 0 {
		t.Fatalf("task %d: got %d attempts (%v), want one or more", id, len(attempts), err)
	}

	chunks, err := admin.Output(t.Context(), r, attempts[len(attempts)-1], 0, 1000)
	if err != nil {
		t.Fatalf("output of task %d: %v", id, err)
	}

	var text strings.Builder
	for _, c := range chunks {
		text.Write(c.Data)
	}

	return text.String()
}
