package engine

import (
	"bytes"
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

// TestRetentionLogsEachWriteThatFails makes the writes of a round that finds no
// old tasks fail in turn.
func TestRetentionLogsEachWriteThatFails(t *testing.T) {
	for failing, step := range []string{"cannot sum up counters", "cannot delete old workers",
		"cannot delete old unique keys", "cannot return free space"} {
		synctest.Test(t, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "test.db")
			disk := fault.Under(t, path)
			store, err := db.Open(t.Context(), path, db.Options{Create: true})
			testkit.NoError(t, err)
			defer store.Close()
			var log bytes.Buffer
			o := Options{Store: store, Log: slog.New(slog.NewTextHandler(&log, nil)),
				WorkOptions: WorkOptions{Lease: time.Minute, Keep: time.Hour}}
			e := newEngine(t, o)
			writes := 0
			disk.Decide(func(ev fault.Event) fault.Code {
				if ev.Op != fault.Lock {
					return fault.OK
				}
				if writes++; writes-1 == failing {
					return fault.IOErr
				}
				return fault.OK
			})
			e.background.Go(e.retain)
			time.Sleep(30 * time.Second)
			e.stop()
			e.background.Wait()
			disk.Decide(nil)
			testkit.Contains(t, log.String(), `level=WARN msg="`+step+`"`)
			testkit.Equal(t, "warnings about "+step, bytes.Count(log.Bytes(), []byte("level=WARN")), 1)
		})
	}
}

func TestFailedDeletionReturnsNoFreeSpace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "test.db")
		disk := fault.Under(t, path)
		store, err := db.Open(t.Context(), path, db.Options{Create: true})
		testkit.NoError(t, err)
		defer store.Close()

		added, err := store.Insert(t.Context(), []jobs.Spec{{Job: "work"}}, now())
		testkit.NoError(t, err)
		_, err = store.Apply(t.Context(), []int64{added[0].ID}, db.Cancel("", false, now()))
		testkit.NoError(t, err)
		time.Sleep(2 * time.Hour)

		var log bytes.Buffer
		e := newEngine(t, Options{Store: store, Log: slog.New(slog.NewTextHandler(&log, nil)),
			WorkOptions: WorkOptions{Lease: time.Minute, Keep: time.Hour}})
		disk.Decide(func(ev fault.Event) fault.Code {
			if ev.Op == fault.Lock {
				return fault.IOErr
			}
			return fault.OK
		})
		e.background.Go(e.retain)
		time.Sleep(30 * time.Second)
		e.stop()
		e.background.Wait()
		disk.Decide(nil)

		testkit.Contains(t, log.String(), "cannot delete old tasks", "cannot delete old unique keys")
		testkit.ContainsNone(t, log.String(), "cannot return free space")
	})
}
