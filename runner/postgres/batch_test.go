package postgres_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/pgkit"
	"example.com/runner/test/testkit/runnerkit"
)

// TestBatchRunsOnServer checks batches that wait until they are full, their
// outcomes, and a rate limit that counts each batch as one start.
func TestBatchRunsOnServer(t *testing.T) {
	r := open(t, pgkit.Shared(t).Address("postgres", "search_path="+pgkit.NewSchema()), runner.Options{})
	var mu sync.Mutex
	var sizes []int
	h := count.BulkHandler(3, func(_ context.Context, tasks []jobs.BulkTask[int]) error {
		mu.Lock()
		defer mu.Unlock()
		sizes = append(sizes, len(tasks))
		for _, task := range tasks {
			if task.Input == 2 {
				task.End(jobs.Fail(errors.New("refused")))
			}
		}
		return nil
	})
	h.BulkWait = time.Hour
	r.Register(h)
	limit := admin.Limit{Target: admin.Target{Kind: admin.JobTarget, Name: count.Job()}, Rate: 2, Per: time.Hour}
	testkit.NoError(t, admin.SetLimit(t.Context(), r, limit))
	stop := work(t, r, runner.WorkOptions{Concurrency: 2})
	defer stop()
	var last jobs.Task
	for n := range 7 { // two full batches, and one task that waits
		task := runnerkit.Enqueue(t, r, count.With(n))
		if n == 5 {
			last = task
		}
	}

	_, err := r.Await(t.Context(), last.ID)
	testkit.NoError(t, err)
	stop()
	testkit.Equal(t, "sizes of the batches", sizes, []int{3, 3})
	for state, want := range map[jobs.State]int{jobs.Completed: 5, jobs.Failed: 1, jobs.Pending: 1} {
		n, _, err := r.Count(t.Context(), jobs.Filter{States: []jobs.State{state}})
		testkit.NoError(t, err)
		testkit.Equal(t, "tasks in state "+string(state), n, want)
	}
}

// TestFunctionMakesTaskOfTickOnServer runs two programs: one has registered the
// function of a schedule, and the other hasn't. Only the first program may
// handle the ticks.
func TestFunctionMakesTaskOfTickOnServer(t *testing.T) {
	address := pgkit.Shared(t).Address("postgres", "search_path="+pgkit.NewSchema())
	other, r := open(t, address, runner.Options{}), open(t, address, runner.Options{})
	got := make(chan int, 9)
	handler := count.Handler(func(_ context.Context, n int) error { got <- n; return nil })
	other.Register(handler)
	r.Register(handler)
	counts := jobs.Schedule{Name: "counts", Cron: "@every 1s", Spec: count.With(-1)}
	testkit.NoError(t, r.OnTick(t.Context(), counts, func(_ context.Context, tick time.Time, spec jobs.Spec) (jobs.Spec, error) {
		args, err := usercode.Marshal(int(tick.Unix()))
		spec.Args = args
		return spec, err
	}))
	stopOther := work(t, other)
	defer stopOther()
	stop := work(t, r)
	defer stop()
	for range 2 {
		select {
		case n := <-got:
			if n < 1_000_000_000 {
				t.Errorf("got argument %d, want the time of a tick", n)
			}
		case <-time.After(patience):
			t.Fatal("got no task, want one of a tick")
		}
	}

	_, err := admin.RunSchedule(t.Context(), other, "counts")
	testkit.ErrorIs(t, err, jobs.ErrConflict)
}
