package engine

import (
	"sync/atomic"
	"testing"
	"time"

	"example.com/runner/jobs"
)

// TestNoTaskStartsAfterItsLeaseHasEnded checks a worker whose lease expires
// between its claim and the start of the task. The worker does not start the
// task, because the task may belong to another worker by now.
func TestNoTaskStartsAfterItsLeaseHasEnded(t *testing.T) {
	onFakeTime(t, func(t *testing.T, o Options, runs *atomic.Int64) {
		e := newEngine(t, o)
		for _, claimed := range []time.Duration{time.Minute, time.Second} { // time between the claim and the start
			task := jobs.Task{ID: 1, GenerationID: 2, Job: "work", Args: []byte(`"x"`)}
			a := e.add([]jobs.Task{task}, time.Now().Add(-claimed))[0]
			a.begin()
			<-e.ended
			if late := claimed == time.Minute; a.release != late || (runs.Load() == 0) != late {
				t.Errorf("claimed %v ago: got given back %v and %d runs, want given back %v", claimed, a.release, runs.Load(), late)
			}
		}
	})
}
