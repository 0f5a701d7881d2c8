package ui_test

import (
	"fmt"
	"testing"

	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// TestListPages reads a list page by page, in both directions. No task may be
// missing or occur twice. The list must end after as many tasks as --rows says.
func TestListPages(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{Sync: runner.SyncNormal})
	specs := make([]jobs.Spec, 2500)
	for i := range specs {
		specs[i] = jobs.Command(command.Command{Argv: []string{"true"}})
	}
	if _, err := r.EnqueueMany(t.Context(), specs...); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		rows   int
		oldest bool
		first  int64
		n      int
	}{{0, false, 2500, 2500}, {0, true, 1, 2500}, {1000, false, 2500, 1000}, {2001, true, 1, 2001}, {3000, false, 2500, 2500},
		{7, true, 1, 7}} {
		n, next, step := 0, test.first, int64(-1)
		if test.oldest {
			step = 1
		}
		_, err := ui.Listing{Rows: test.rows, Oldest: test.oldest}.Each(t.Context(), r, func(task jobs.Task) error {
			if task.ID != next {
				return fmt.Errorf("task %d, want %d", task.ID, next)
			}
			next += step
			n++
			return nil
		})
		testkit.NoError(t, err)
		testkit.Equal(t, "number of tasks", n, test.n)
	}
}

// TestListByMetadataSaysWhereItStopped limits how many tasks a search compares.
// The next call goes on where the first one stopped.
func TestListByMetadataSaysWhereItStopped(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{Sync: runner.SyncNormal})
	specs := make([]jobs.Spec, 30)
	for i := range specs {
		specs[i] = jobs.Command(command.Command{Argv: []string{"true"}}, jobs.Metadata(map[string]string{"tenant": fmt.Sprint(i % 10)}))
	}
	_, err := r.EnqueueMany(t.Context(), specs...)
	testkit.NoError(t, err)
	list := ui.Listing{Filter: jobs.Filter{Metadata: map[string]string{"tenant": "4"}}, Rows: 5, Compared: 20}
	find := func(wantRest int64, want ...int64) {
		t.Helper()
		var found []int64
		rest, err := list.Each(t.Context(), r, func(task jobs.Task) error { found = append(found, task.ID); return nil })
		testkit.NoError(t, err)
		testkit.Equal(t, "tasks", found, want)
		testkit.Equal(t, "task at which the list stopped", rest, wantRest)
	}
	find(11, 25, 15)
	list.Filter.Before = 11
	find(0, 5)
	list.Filter.Before, list.Rows = 0, 0
	find(0, 25, 15, 5)
}
