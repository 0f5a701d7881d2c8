package output

import (
	"context"
	"slices"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/test/testkit/runnerkit"
)

var noop = jobs.Define[int]("noop")

func TestAwaitEachSeesEveryEnd(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{Sync: runner.SyncNormal})
	var ids []int64
	for i := range 5 {
		task, err := r.Enqueue(t.Context(), noop.With(i))
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, task.ID)
	}
	steer := func(id int64, forget bool) {
		t.Helper()
		_, err := r.Cancel(t.Context(), []int64{id}, runner.CancelOptions{})
		if err == nil && forget {
			_, err = r.Delete(t.Context(), []int64{id})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	steer(ids[1], true) // cancel and delete this task before Each polls for the first time
	steer(ids[0], false)
	var states []jobs.State
	var seen []int64
	err := Each(t.Context(), r, ids[:4], func() {}, func(task jobs.Task) (bool, error) {
		seen, states = append(seen, task.ID), append(states, task.State)
		switch len(seen) {
		case 2: // before the next poll, cancel one task, then cancel and delete another one
			steer(ids[2], false)
			steer(ids[3], true)
		}
		return true, nil
	})
	if want := []int64{ids[0], ids[1], ids[2], ids[3]}; err != nil || !slices.Equal(seen, want) {
		t.Errorf("%v, want %v; %v", seen, want, err)
	}
	if want := []jobs.State{jobs.Cancelled, "", jobs.Cancelled, ""}; !slices.Equal(states, want) {
		t.Errorf("%q, want %q", states, want)
	}

	// When the context ends, Each returns its cause.
	ctx, cancel := context.WithTimeoutCause(t.Context(), time.Millisecond, TimedOut{After: time.Millisecond})
	defer cancel()
	err = Each(ctx, r, ids[4:], func() {}, func(jobs.Task) (bool, error) {
		t.Error("got a task, want none: no task has ended")
		return false, nil
	})
	if err != (TimedOut{After: time.Millisecond}) {
		t.Error(err)
	}
}
