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

func TestQueuesAreRecordedAfterFailedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "test.db")
		disk := fault.Under(t, path)
		store, err := db.Open(t.Context(), path, db.Options{Create: true})
		testkit.NoError(t, err)
		defer store.Close()
		e := newEngine(t, Options{Store: store, Log: slog.New(slog.DiscardHandler), WorkOptions: WorkOptions{Lease: time.Minute}})
		failed := false
		disk.Decide(func(ev fault.Event) fault.Code {
			if failed || ev.Op != fault.Lock {
				return fault.OK
			}
			failed = true
			return fault.IOErr
		})

		want := []jobs.QueueMax{{Name: "a"}}
		e.SetQueues(want)
		e.background.Go(e.reports)
		time.Sleep(10 * reportEvery)
		e.stop()
		e.background.Wait()
		disk.Decide(nil)

		testkit.Equal(t, "whether a write has failed", failed, true)
		workers, err := store.Workers(t.Context(), now().Add(-time.Hour))
		testkit.NoError(t, err)
		testkit.Equal(t, "recorded queues", workers[0].Queues, want)
	})
}
