package runner

import (
	"context"
	"slices"
	"testing"
)

func TestTheWatchIsSlowWhileNobodyNeedsItAtOnce(t *testing.T) {
	var pace []bool
	h := &hub{watch: func(context.Context, func(bool)) error { return nil }, slow: func(slow bool) { pace = append(pace, slow) }}
	defer h.close()
	expect := func(when string, want ...bool) {
		t.Helper()
		if !slices.Equal(slices.Compact(pace), want) {
			t.Errorf("%s: %v, want %v", when, pace, want)
		}
		pace = nil
	}
	_, workerEnds := h.news(t.Context())
	expect("a worker that has begun")
	h.setFull(true)
	h.setFull(true)
	expect("no slot is free", true)
	_, stop := h.await(t.Context(), 1)
	expect("somebody waits for a task", false)
	stop()
	expect("nobody does any more", true)
	h.setFull(false)
	expect("a slot is free", false)
	workerEnds()
	expect("the worker has ended")
}
