package postgres_test

import (
	"context"
	"slices"
	"testing"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/runnertest"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/pgkit"
)

// onBothEngines runs a test on a file, where time is fake, and on a server:
// with a worker that prefetches, and with one that doesn't, because it names
// its queues. most is the greatest number of prefetched tasks.
func onBothEngines(t *testing.T, test func(t *testing.T, r *runner.Runner, o runner.WorkOptions, most int)) {
	t.Helper()
	for name, c := range map[string]struct {
		o    runner.WorkOptions
		most int
	}{
		"off": {runner.WorkOptions{Concurrency: 1, Queues: []jobs.QueueMax{{Name: "default"}}}, 0},
		"on":  {runner.WorkOptions{Concurrency: 1}, 100},
	} {
		t.Run("file/"+name, func(t *testing.T) {
			runnertest.Run(t, func(t *testing.T, r *runner.Runner) { test(t, r, c.o, c.most) })
		})
		t.Run("server/"+name, func(t *testing.T) {
			test(t, open(t, pgkit.Address(t), runner.Options{}), c.o, c.most)
		})
	}
}

// recordStarts registers a function for the job "count". The function appends
// the id of its task to started, and then calls each with this id.
func recordStarts(r *runner.Runner, each func(id int64)) (started *[]int64) {
	started = new([]int64)
	r.Register(count.Handler(func(ctx context.Context, _ int) error {
		task, _ := runner.TaskFromContext(ctx)
		*started = append(*started, task.ID)
		each(task.ID)
		return nil
	}))
	return started
}

func enqueueAll(t *testing.T, r *runner.Runner, n int, priority func(i int) int) {
	t.Helper()
	specs := make([]jobs.Spec, n)
	for i := range specs {
		specs[i] = count.With(i, jobs.Priority(priority(i)))
	}
	_, err := r.EnqueueSeq(t.Context(), slices.Values(specs))
	testkit.NoError(t, err)
}

func TestTasksStartInOrderOfPriorityAndID(t *testing.T) {
	onBothEngines(t, func(t *testing.T, r *runner.Runner, o runner.WorkOptions, most int) {
		const all, urgent = 600, 601
		started := recordStarts(r, func(id int64) {
			if id == all { // it is the last one with priority 2
				_, err := r.Enqueue(t.Context(), count.With(0, jobs.Priority(3)))
				testkit.NoError(t, err)
			}
		})
		enqueueAll(t, r, all, func(i int) int { return i % 3 })
		o.UntilEmpty = true
		testkit.NoError(t, r.Work(t.Context(), o))
		at := slices.Index(*started, urgent)
		testkit.Between(t, "place of the new task of a higher priority", at, 200, 200+2*most)
		want := make([]int64, 0, all)
		for priority := 2; priority >= 0; priority-- {
			for i := priority; i < all; i += 3 {
				want = append(want, int64(i+1))
			}
		}
		testkit.Equal(t, "order of the other tasks", slices.Delete(*started, at, at+1), want)
	})
}

func TestWorkerThatStopsGivesTasksBackThatItHasPrefetched(t *testing.T) {
	onBothEngines(t, func(t *testing.T, r *runner.Runner, o runner.WorkOptions, most int) {
		ctx, stop := context.WithCancel(t.Context())
		claimed := 0
		started := recordStarts(r, func(id int64) {
			n, _, err := r.Count(t.Context(), jobs.Filter{States: []jobs.State{jobs.Running}})
			testkit.NoError(t, err)
			if claimed = max(claimed, n); id == 150 {
				stop()
			}
		})
		enqueueAll(t, r, 300, func(int) int { return 0 })
		testkit.NoError(t, r.Work(ctx, o))
		// a worker that doesn't prefetch has at most two claimed tasks: one
		// that runs, and one whose outcome isn't written yet
		if got := claimed > 2; got != (most > 0) {
			t.Errorf("got at most %d tasks claimed at once, want more than two: %v", claimed, most > 0)
		}
		testkit.Between(t, "tasks that started", len(*started), 150, 150+most)
		_, counts, err := r.Count(t.Context(), jobs.Filter{})
		testkit.NoError(t, err)
		testkit.Equal(t, "running tasks", counts[jobs.Running], 0)
		testkit.Equal(t, "completed tasks", counts[jobs.Completed], len(*started))
		testkit.Equal(t, "pending tasks", counts[jobs.Pending], 300-len(*started))
		for task, err := range r.All(t.Context(), jobs.Filter{States: []jobs.State{jobs.Pending}}) {
			testkit.NoError(t, err)
			if task.Attempt != 0 || task.Losses != 0 {
				t.Errorf("got task %d with %d attempts and %d losses, want none", task.ID, task.Attempt, task.Losses)
			}
		}
	})
}
