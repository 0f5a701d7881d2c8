package db

import (
	"path/filepath"
	"testing"
	"testing/synctest"
)

func TestPollingIsSlowWhileNoSubscriberIsUrgent(t *testing.T) {
	d, err := Open(t.Context(), filepath.Join(t.TempDir(), "test.db"), Options{Create: true, Alone: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	expect := func(when string, want bool) {
		t.Helper()
		if d.slow != want {
			t.Errorf("after %s got slow polling %v, want %v", when, d.slow, want)
		}
	}

	_, workerEnds := d.SubscribeWorker(t.Context())
	expect("the start of a worker", false)
	d.SetBusy(true)
	d.SetBusy(true)
	expect("the last slot was taken", true)
	_, stop := d.Subscribe(t.Context())
	expect("someone subscribed to all changes", false)
	stop()
	expect("that subscription ended", true)
	d.SetBusy(false)
	expect("a slot became free", false)
	workerEnds()
	expect("the end of the worker", false)
}

func TestSubscriptionAfterCloseGetsNoticesOfThisProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := Open(t.Context(), filepath.Join(t.TempDir(), "test.db"), Options{Create: true})
		if err != nil {
			t.Fatal(err)
		}
		d.Close()

		changed, stop := d.Subscribe(t.Context()) // a watch would keep this bubble from ending
		defer stop()
		d.Notify()

		if got := len(changed); got != 1 {
			t.Errorf("got %d notices, want 1", got)
		}
	})
}
