package runner_test

import (
	"os"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

func TestAwaitEndsWhenFileIsRemoved(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	task := runnerkit.Enqueue(t, r, noop.With("never run"))
	if err := os.Remove(admin.Path(r)); err != nil {
		t.Fatal(err)
	}
	_, err := r.Await(t.Context(), task.ID)
	testkit.ErrorIs(t, err, jobs.ErrReplaced)
	testkit.ErrorIs(t, admin.Changes(t.Context(), r, func() (bool, error) { return false, nil }), jobs.ErrReplaced)
}

func TestTaskExpiresAtGivenTime(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	at := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	spec := noop.With("late")
	spec.ExpiresAt = at
	if got := runnerkit.Get(t, r, runnerkit.Enqueue(t, r, spec).ID).ExpiresAt; !got.Equal(at) {
		t.Errorf("expires at %v, want %v", got, at)
	}
	spec.ExpiresIn = time.Minute
	_, err := r.Enqueue(t.Context(), spec)
	testkit.ErrorIs(t, err, jobs.ErrInvalid)
}
