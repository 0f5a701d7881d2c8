package db

import (
	"path/filepath"
	"testing"
	"testing/synctest"

	"example.com/runner/db/internal/engine"
)

// paced notes the pace that the watches of a database get.
type paced struct {
	engine.Shared
	slowly bool
}

func (p *paced) WatchSlowly(slowly bool) {
	p.slowly = slowly
	p.Shared.WatchSlowly(slowly)
}

func TestPollingIsSlowWhileNoSubscriberIsUrgent(t *testing.T) {
	d, err := Open(t.Context(), filepath.Join(t.TempDir(), "test.db"), Options{Create: true, Alone: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	watched := &paced{Shared: d.Shared}
	d.Shared = watched
	expect := func(when string, want bool) {
		t.Helper()
		if watched.slowly != want {
			t.Errorf("after %s got slow polling %v, want %v", when, watched.slowly, want)
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
