package runner_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func TestWaitingEndsWhenTheFileIsGone(t *testing.T) {
	r := open(t, runner.Options{})
	task := enqueue(t, r, noop.With("never run"))
	if err := os.Remove(r.Path()); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Await(t.Context(), task.ID); !errors.Is(err, jobs.ErrReplaced) {
		t.Errorf("Await: %v", err)
	}
	if err := r.Changes(t.Context(), func() (bool, error) { return false, nil }); !errors.Is(err, jobs.ErrReplaced) {
		t.Errorf("Changes: %v", err)
	}
}

func TestExpiryAtATime(t *testing.T) {
	r := open(t, runner.Options{})
	at := time.Now().Add(time.Hour).Truncate(time.Millisecond)
	spec := noop.With("late")
	spec.ExpiresAt = at
	if got := get(t, r, enqueue(t, r, spec).ID).ExpiresAt; !got.Equal(at) {
		t.Errorf("expires at %v, want %v", got, at)
	}
	spec.ExpiresIn = time.Minute
	if _, err := r.Enqueue(t.Context(), spec); !errors.Is(err, jobs.ErrInvalid) {
		t.Errorf("a time and a delay: %v", err)
	}
}
