package runner_test

import (
	"slices"
	"testing"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

func TestQueuesChangeWhileWorkRuns(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	handlers(r)
	testkit.ErrorIs(t, admin.SetQueues(r, nil), jobs.ErrConflict)
	add := func(queue string) int64 { return runnerkit.Enqueue(t, r, quick.With(nil, jobs.Queue(queue))).ID }
	wantDone := func(id int64, waits ...int64) {
		t.Helper()
		task, err := r.Await(t.Context(), id)
		testkit.NoError(t, err)
		testkit.Equal(t, "state of the awaited task", task.State, jobs.Completed)
		for _, id := range waits {
			testkit.Equal(t, "state of a task of another queue", runnerkit.Get(t, r, id).State, jobs.Pending)
		}
	}

	waits := add("b")
	runnerkit.Work(t, r, runner.WorkOptions{Queues: []jobs.QueueMax{{Name: "a"}}})
	wantDone(add("a"), waits)

	both := []jobs.QueueMax{{Name: "a"}, {Name: "b", Max: 1}}
	testkit.NoError(t, admin.SetQueues(r, both))
	wantDone(waits)
	until(t, r, func() bool {
		workers, err := admin.Workers(t.Context(), r)
		testkit.NoError(t, err)
		return slices.Equal(workers[0].Queues, both)
	})

	testkit.NoError(t, admin.SetQueues(r, both[1:]))
	waits = add("a")
	wantDone(add("b"), waits)

	testkit.NoError(t, admin.SetQueues(r, nil)) // all queues
	wantDone(waits)
	wantDone(add("c"))
	testkit.ErrorIs(t, admin.SetQueues(r, []jobs.QueueMax{{Name: "no name!"}}), jobs.ErrInvalid)
}
