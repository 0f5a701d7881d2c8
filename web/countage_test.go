package web

import (
	"testing"
	"time"

	"example.com/runner/internal/testkit"
	"example.com/runner/internal/testkit/runnerkit"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// TestAnOldCountOfPendingTasksIsShownWithItsAge checks that a page does not wait for a count that takes long, and that it reads all other
// numbers.
func TestAnOldCountOfPendingTasksIsShownWithItsAge(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	first, err := r.Enqueue(t.Context(), jobs.Shell("true").With(jobs.Queue("media")))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.Enqueue(t.Context(), jobs.Shell("true").With(jobs.Queue("media"), jobs.After(first.ID))); err != nil {
		t.Fatal(err)
	}
	var c queueCounts
	<-c.start(r)
	c.mu.Lock()
	c.pending[0].N, c.total = 2*manyPending, 2*manyPending // pretend that the last count was high
	c.at, c.reading = time.Now().Add(-time.Hour), make(chan struct{})
	c.mu.Unlock()
	queues, age, err := c.read(t.Context(), r)
	if err != nil || len(queues) != 1 {
		t.Fatalf("got queues %+v, error %v; want one queue", queues, err)
	}
	testkit.Equal(t, "pending tasks", queues[0].Counts[jobs.Pending], 2*manyPending)
	testkit.Equal(t, "blocked tasks", queues[0].Counts[jobs.Blocked], 1)
	if age < time.Hour {
		t.Errorf("got age %s, want an hour", age)
	}
	told := 0
	c.changed = func() { told++ }
	c.count(r, c.reading)
	queues, age, err = c.read(t.Context(), r)
	if err != nil || age != 0 || queues[0].Counts[jobs.Pending] != 1 || told != 1 {
		t.Errorf("got queues %+v, age %s, %d notifications, error %v; want 1 pending task, no age and 1 notification",
			queues, age, told, err)
	}
}
