package runner_test

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"example.com/runner/internal/testkit"
	"example.com/runner/internal/testkit/runnerkit"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func TestEventsReportStartsAndEnds(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{Concurrency: 1})
	r.Register(double.Handler(func(_ context.Context, n int) (int, error) {
		if n == 0 {
			return 0, jobs.Cancel(errors.New("nothing to double"))
		}
		return 2 * n, nil
	}))
	runnerkit.Enqueue(t, r, double.With(4))
	runnerkit.Enqueue(t, r, double.With(0))
	ctx, stop := context.WithCancel(t.Context())
	whole, small := r.Events(ctx, 10), r.Events(t.Context(), 0)
	runnerkit.Drain(t, r)
	stop()
	var got []runner.Event
	for event := range whole { // the channel closes when the context ends
		got = append(got, event)
	}
	testkit.Len(t, "results", got, 4)
	testkit.Equal(t, "kind of event 0", got[0].Kind, runner.EventStarted)
	testkit.Equal(t, "state in event 0", got[0].Task.State, jobs.Running)
	testkit.Equal(t, "kind of event 1", got[1].Kind, runner.EventEnded)
	testkit.Equal(t, "state in event 1", got[1].Task.State, jobs.Completed)
	testkit.Equal(t, "result in event 1", string(got[1].Task.Result), "8")
	testkit.Equal(t, "state in event 3", got[3].Task.State, jobs.Cancelled)
	testkit.Equal(t, "error in event 3", got[3].Task.Error, "nothing to double")
	testkit.Equal(t, "task of event 3", got[3].Task.ID, 2)
	testkit.Equal(t, "dropped events before event 3", got[3].Dropped, 0)
	task := runnerkit.Get(t, r, 1)
	testkit.Equal(t, "generation in event 1", got[1].Task.GenerationID, task.GenerationID)
	testkit.Equal(t, "end in event 1", got[1].Task.FinishedAt.UnixMilli(), task.FinishedAt.UnixMilli())

	first := <-small
	testkit.Equal(t, "kind of the first event", first.Kind, runner.EventStarted)
	testkit.Equal(t, "dropped events", first.Dropped, 0)
	runnerkit.Enqueue(t, r, double.With(1))
	runnerkit.Drain(t, r)
	next := <-small
	testkit.Equal(t, "task of the next event", next.Task.ID, 3)
	testkit.Equal(t, "dropped events", next.Dropped, 3)
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	_, open := <-small
	testkit.Equal(t, "the channel is open after Close", open, false)
	_, open = <-r.Events(t.Context(), 1)
	testkit.Equal(t, "a channel of a closed Runner is open", open, false)
}

func TestAllYieldsEveryTaskThatMatches(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	const n = 1234 // All reads 500 tasks with one query, so it needs three queries
	if _, err := r.EnqueueAll(t.Context(), repeat(quick.With(nil), n)); err != nil {
		t.Fatal(err)
	}
	other := runnerkit.Enqueue(t, r, double.With(1))
	for _, test := range []struct {
		filter      jobs.Filter
		page        runner.Page
		first, last int64
		n           int
	}{
		{jobs.Filter{}, runner.Page{}, n + 1, 1, n + 1},
		{jobs.Filter{Jobs: []string{"quick"}}, runner.Page{Oldest: true}, 1, n, n},
		{jobs.Filter{Before: 1001, After: 100}, runner.Page{Limit: 777}, 1000, 224, 777},
		{jobs.Filter{Before: 1001, After: 100}, runner.Page{Oldest: true, Limit: 5}, 101, 105, 5},
		{jobs.Filter{IDs: []int64{7, other.ID}}, runner.Page{}, other.ID, 7, 2},
		{jobs.Filter{Jobs: []string{"none"}}, runner.Page{}, 0, 0, 0},
	} {
		var ids []int64
		for task, err := range r.All(t.Context(), test.filter, test.page) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, task.ID)
		}
		testkit.Len(t, "ids", ids, test.n)
		if len(ids) > 0 && (ids[0] != test.first || ids[len(ids)-1] != test.last) {
			t.Errorf("filter %+v, page %+v: got tasks %d to %d, want %d to %d", test.filter, test.page, ids[0], ids[len(ids)-1],
				test.first, test.last)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	seen := 0
	var last error
	for _, err := range r.All(ctx, jobs.Filter{}, runner.Page{}) {
		if last = err; err == nil {
			seen++
		}
		stop()
	}
	testkit.ErrorIs(t, last, context.Canceled)
	if seen == 0 || seen == n+1 {
		t.Errorf("got %d tasks before the cancel, want at least one and fewer than %d", seen, n+1)
	}
	for range r.All(t.Context(), jobs.Filter{}, runner.Page{}) {
		break
	}
}

// endlessContext is a context that never ends. It counts the functions that wait for its end.
type endlessContext struct {
	context.Context
	done    chan struct{}
	waiting atomic.Int64
}

// Done returns a channel that never closes. Package context compares it with the channel of the embedded context. As the two channels
// differ, package context calls the method AfterFunc of endlessContext.
func (c *endlessContext) Done() <-chan struct{} { return c.done }

// AfterFunc is the method that context.AfterFunc calls.
func (c *endlessContext) AfterFunc(func()) (stop func() bool) {
	c.waiting.Add(1)
	return sync.OnceValue(func() bool { c.waiting.Add(-1); return true })
}

func TestNothingWaitsForAContextAfterClose(t *testing.T) {
	ctx := &endlessContext{Context: t.Context(), done: make(chan struct{})}
	r, err := runner.Open(t.Context(), filepath.Join(t.TempDir(), "test.db"), runner.Options{})
	testkit.NoError(t, err)
	events := r.Events(ctx, 1)
	finished := make(chan error)
	go func() { finished <- r.OnFinished(ctx, "audit", func(context.Context, jobs.Task) error { return nil }) }()
	if ctx.waiting.Load() == 0 {
		t.Error("got no function that waits for the end of the context before Close, want that of Events")
	}
	testkit.NoError(t, r.Close())
	testkit.ErrorIs(t, <-finished, jobs.ErrClosed)
	if _, open := <-events; open {
		t.Error("got an open channel of events after Close, want a closed one")
	}
	testkit.Equal(t, "functions that wait for the end of the context after Close", ctx.waiting.Load(), 0)
}
