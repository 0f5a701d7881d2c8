package runner_test

import (
	"context"
	"errors"
	"testing"

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func TestEventsTellWhatWorkDoes(t *testing.T) {
	r := open(t, runner.Options{Concurrency: 1})
	r.Register(double.Handler(func(_ context.Context, n int) (int, error) {
		if n == 0 {
			return 0, jobs.Cancel(errors.New("nothing to double"))
		}
		return 2 * n, nil
	}))
	enqueue(t, r, double.With(4))
	enqueue(t, r, double.With(0))
	ctx, stop := context.WithCancel(t.Context())
	whole, small := r.Events(ctx, 10), r.Events(t.Context(), 0)
	drain(t, r)
	stop()
	var got []runner.Event
	for event := range whole { // the channel closes when the context ends
		got = append(got, event)
	}
	if len(got) != 4 || got[0].Kind != runner.EventStarted || got[0].Task.State != jobs.Running || got[1].Kind != runner.EventEnded ||
		got[1].Task.State != jobs.Completed || string(got[1].Task.Result) != "8" || got[3].Task.State != jobs.Cancelled ||
		got[3].Task.Error != "nothing to double" || got[3].Task.ID != 2 || got[3].Dropped != 0 {
		t.Fatalf("%+v", got)
	}
	if task := get(t, r, 1); got[1].Task.GenerationID != task.GenerationID ||
		got[1].Task.FinishedAt.UnixMilli() != task.FinishedAt.UnixMilli() {
		t.Errorf("told %+v, is %+v", got[1].Task, task)
	}

	if first := <-small; first.Kind != runner.EventStarted || first.Dropped != 0 {
		t.Errorf("got %+v; want Kind = EventStarted, Dropped = 0", first)
	}
	enqueue(t, r, double.With(1))
	drain(t, r)
	if next := <-small; next.Task.ID != 3 || next.Dropped != 3 {
		t.Errorf("%d events were dropped before that of task %d", next.Dropped, next.Task.ID)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, open := <-small; open {
		t.Error("the channel is open after Close")
	}
	if _, open := <-r.Events(t.Context(), 1); open {
		t.Error("a channel of a closed Runner is open")
	}
}

func TestAllWalksOverEveryTaskOfAFilter(t *testing.T) {
	r := open(t, runner.Options{})
	const n = 1234 // more than a page
	if _, err := r.EnqueueAll(t.Context(), repeat(quick.With(nil), n)); err != nil {
		t.Fatal(err)
	}
	other := enqueue(t, r, double.With(1))
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
		if len(ids) != test.n || len(ids) > 0 && (ids[0] != test.first || ids[len(ids)-1] != test.last) {
			t.Errorf("%+v, %+v: %d tasks", test.filter, test.page, len(ids))
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
	if !errors.Is(last, context.Canceled) || seen == 0 || seen == n+1 {
		t.Errorf("after %d tasks: %v", seen, last)
	}
	for range r.All(t.Context(), jobs.Filter{}, runner.Page{}) {
		break
	}
}
