package engine

import (
	"sync/atomic"
	"testing"
	"time"

	"example.com/runner/jobs"
)

// TestAbandonedBatchFreesItsSlotOnce abandons a batch of which one attempt has
// ended, but the loop hasn't received it yet.
func TestAbandonedBatchFreesItsSlotOnce(t *testing.T) {
	onFakeTime(t, func(t *testing.T, o Options, _ *atomic.Int64) {
		h := o.Handlers["work"]
		h.BulkSize = 3
		o.Handlers["work"] = h
		e := newEngine(t, o)
		attempts := e.add([]jobs.Task{
			{ID: 1, GenerationID: 1, Job: "work"},
			{ID: 2, GenerationID: 2, Job: "work"},
			{ID: 3, GenerationID: 3, Job: "work"},
		}, time.Now())
		if got := e.used(); got != 1 {
			t.Errorf("got %d slots taken by a batch, want 1", got)
		}

		attempts[0].over.Store(true)
		e.abandonAll()
		for _, a := range e.unwritten {
			e.forget(a, nil)
		}
		e.unwritten = nil
		if got := e.used(); got != 1 {
			t.Errorf("got %d slots taken before the last attempt is received, want 1", got)
		}

		e.receive(attempts[0])
		e.forget(attempts[0], nil)
		if got := e.used(); got != 0 {
			t.Errorf("got %d slots taken at the end, want 0", got)
		}
	})
}
