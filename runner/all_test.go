package runner_test

import (
	"context"
	"testing"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

func TestAllYieldsEveryTaskThatMatches(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	const n = 1234 // All reads 500 tasks with one query, so it needs three queries
	if _, err := r.EnqueueSeq(t.Context(), repeat(quick.With(nil), n)); err != nil {
		t.Fatal(err)
	}
	other := runnerkit.Enqueue(t, r, double.With(1))
	for _, test := range []struct {
		filter      jobs.Filter
		first, last int64
		n           int
	}{
		{jobs.Filter{}, n + 1, 1, n + 1},
		{jobs.Filter{Jobs: []string{"quick"}, OldestFirst: true}, 1, n, n},
		{jobs.Filter{Before: 1001, After: 100, Limit: 777}, 1000, 224, 777},
		{jobs.Filter{Before: 1001, After: 100, OldestFirst: true, Limit: 5}, 101, 105, 5},
		{jobs.Filter{IDs: []int64{7, other.ID}}, other.ID, 7, 2},
		{jobs.Filter{Jobs: []string{"none"}}, 0, 0, 0},
	} {
		var ids []int64
		for task, err := range r.All(t.Context(), test.filter) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, task.ID)
		}
		testkit.Len(t, "ids", ids, test.n)
		if len(ids) > 0 && (ids[0] != test.first || ids[len(ids)-1] != test.last) {
			t.Errorf("filter %+v: got tasks %d to %d, want %d to %d", test.filter, ids[0], ids[len(ids)-1],
				test.first, test.last)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	seen := 0
	var last error
	for _, err := range r.All(ctx, jobs.Filter{}) {
		if last = err; err == nil {
			seen++
		}
		stop()
	}
	testkit.ErrorIs(t, last, context.Canceled)
	if seen == 0 || seen == n+1 {
		t.Errorf("got %d tasks before the cancel, want at least one and fewer than %d", seen, n+1)
	}
	for range r.All(t.Context(), jobs.Filter{}) {
		break
	}
}
