package engine

import (
	"log/slog"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"example.com/runner/db"
	"example.com/runner/db/dbtest/fault"
	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

// TestWorkerClaimsSoonAfterItsHeartbeatsRecoverDuringAWrite lets them succeed
// again while a cycle that may claim nothing takes the write lock.
func TestWorkerClaimsSoonAfterItsHeartbeatsRecoverDuringAWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "test.db")
		disk := fault.Under(t, path)
		store, err := db.Open(t.Context(), path, db.Options{Create: true, Alone: true})
		testkit.NoError(t, err)
		defer store.Close()

		e := newEngine(t, Options{Store: store, Log: slog.New(slog.DiscardHandler),
			WorkOptions: WorkOptions{Concurrency: 1, Lease: time.Minute},
			Handlers:    map[string]jobs.Handler{"work": {Job: "work", MaxAttempts: 3}}})
		_, err = store.Insert(t.Context(), []jobs.Spec{{Job: "work", In: time.Second}}, now())
		testkit.NoError(t, err)
		time.Sleep(e.o.Lease) // without a heartbeat

		recovered := false
		disk.Decide(func(ev fault.Event) fault.Code {
			if ev.Op == fault.Lock {
				e.mu.Lock()
				defer e.mu.Unlock()
				e.confirmed, recovered = now(), true
			}
			return fault.OK
		})
		e.look()
		testkit.NoError(t, e.cycle(t.Context()))
		disk.Decide(nil)

		testkit.Equal(t, "heartbeats recovered", recovered, true)
		testkit.Equal(t, "tasks that the cycle claimed", len(e.running), 0)
		testkit.Equal(t, "time until the next look", e.sleep(), firstBackoff)
	})
}
