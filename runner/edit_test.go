package runner_test

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

func TestEditChangesWaitingTask(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	greet := jobs.Define[string]("greet")
	var got []string
	r.Register(greet.Handler(func(_ context.Context, name string) error {
		got = append(got, name)
		return nil
	}))
	task := runnerkit.Enqueue(t, r, greet.With("ann", jobs.In(time.Hour)))

	spec := greet.With("bob")
	edited, err := r.Edit(t.Context(), task.ID, jobs.In(0), jobs.Priority(9), func(s *jobs.Spec) { s.Args, s.Err = spec.Args, spec.Err })
	testkit.NoError(t, err)
	testkit.Equal(t, "priority", edited.Priority, 9)
	testkit.Equal(t, "state", edited.State, jobs.Pending)

	runnerkit.Drain(t, r)
	testkit.Equal(t, "names", got, []string{"bob"})
	_, err = r.Edit(t.Context(), task.ID, jobs.Priority(1))
	testkit.ErrorIs(t, err, jobs.ErrConflict)
	_, err = r.Edit(t.Context(), 99, jobs.Priority(1))
	testkit.ErrorIs(t, err, jobs.ErrNotFound)
	_, err = r.Edit(t.Context(), task.ID, nil)
	testkit.ErrorIs(t, err, jobs.ErrInvalid)
}

func TestHandlerEditsMetadataOfItsTask(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	seen := jobs.Define[int]("seen")
	var before []map[string]string
	r.Register(seen.Handler(func(ctx context.Context, n int) error {
		task, _ := runner.TaskFromContext(ctx)
		before = append(before, maps.Clone(task.Metadata))
		_, err := r.Edit(ctx, task.ID, jobs.Metadata(map[string]string{"attempt": "first"}))
		testkit.NoError(t, err)
		if task.Attempt == 1 {
			return jobs.RetryIn(0, errors.New("again"))
		}
		return nil
	}))
	task := runnerkit.Enqueue(t, r, seen.With(1, jobs.Metadata(map[string]string{"tenant": "acme"})))
	runnerkit.Drain(t, r)

	_, err := r.Edit(t.Context(), task.ID, jobs.Metadata(map[string]string{"invoice": "7"}))
	testkit.NoError(t, err)
	both := map[string]string{"tenant": "acme", "attempt": "first"}
	testkit.Equal(t, "metadata that the attempts saw", before, []map[string]string{{"tenant": "acme"}, both})
	both["invoice"] = "7"
	after := runnerkit.Get(t, r, task.ID)
	testkit.Equal(t, "metadata at the end", after.Metadata, both)
	after, err = r.Edit(t.Context(), task.ID, func(s *jobs.Spec) { delete(s.Metadata, "invoice") })
	testkit.NoError(t, err)
	delete(both, "invoice")
	testkit.Equal(t, "metadata without the key", after.Metadata, both)
	testkit.Equal(t, "state", after.State, jobs.Completed)
}
