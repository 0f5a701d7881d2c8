package notify

import (
	"context"
	"slices"
	"testing"
)

func TestPollingIsSlowWhileNoSubscriberIsUrgent(t *testing.T) {
	var pace []bool
	n := New(func(context.Context, bool, func(bool)) {}, func(slow bool) { pace = append(pace, slow) })
	defer n.Close()
	expect := func(when string, want ...bool) {
		t.Helper()
		if !slices.Equal(slices.Compact(pace), want) {
			t.Errorf("after %s got the paces %v, want %v (true for slow)", when, pace, want)
		}
		pace = nil
	}
	_, workerEnds := n.SubscribeWorker(t.Context())
	expect("the start of a worker")
	n.SetBusy(true)
	n.SetBusy(true)
	expect("the last slot was taken", true)
	_, stop := n.Subscribe(t.Context())
	expect("someone subscribed to all changes", false)
	stop()
	expect("that subscription ended", true)
	n.SetBusy(false)
	expect("a slot became free", false)
	workerEnds()
	expect("the end of the worker")
}

func TestNoWatchStartsAfterClose(t *testing.T) {
	watches := 0
	n := New(func(context.Context, bool, func(bool)) { watches++ }, func(bool) {})
	n.Close()

	_, stop := n.Subscribe(t.Context())
	defer stop()

	if watches != 0 {
		t.Errorf("got %d watches of a closed database, want none", watches)
	}
}
