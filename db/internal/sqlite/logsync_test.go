package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"example.com/runner/db/internal/engine"
	"example.com/runner/test/testkit"
)

// TestLogIsSyncedAfterDelay checks when the write-ahead log is synced while
// commits do no fsync.
func TestLogIsSyncedAfterDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		var mu sync.Mutex // guards the variables below, because the sync runs in the goroutine of a timer
		var syncs []time.Duration
		var fail error
		l := logSync{delay: 5 * time.Second, sync: func() error {
			mu.Lock()
			defer mu.Unlock()
			syncs = append(syncs, time.Since(began))
			return fail
		}}
		commit := func(changed bool, want error) {
			t.Helper()
			if err := l.committed(changed); !errors.Is(err, want) {
				t.Errorf("after %v: got error %v from a commit, want %v", time.Since(began), err, want)
			}
		}
		expect := func(wait time.Duration, want ...time.Duration) {
			t.Helper()
			time.Sleep(wait)
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			testkit.Equal(t, "times of the syncs", syncs, want)
		}
		commit(false, nil)
		expect(10 * time.Second) // a commit without changes needs no sync
		commit(true, nil)
		time.Sleep(3 * time.Second)
		commit(true, nil)
		expect(10*time.Second, 15*time.Second) // both commits share one sync
		commit(true, nil)
		l.setLevel(true)
		commit(true, nil)
		expect(10*time.Second, 15*time.Second) // no new sync: the commit with an fsync has synced the log
		l.setLevel(false)
		commit(true, nil)
		mu.Lock()
		fail = errors.New("the disk of this test is full")
		mu.Unlock()
		expect(10*time.Second, 15*time.Second, 38*time.Second)
		commit(true, fail) // the next commit returns the error
		commit(true, nil)
		if err := l.close(); !errors.Is(err, fail) {
			t.Errorf("got error %v from close, want %v", err, fail)
		}
		expect(10*time.Second, 15*time.Second, 38*time.Second, 43*time.Second) // close doesn't wait for the delay
	})
}

func TestSyncLogSyncsExistingLog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	d, err := New(path, engine.Options{Flash: time.Second})
	testkit.NoError(t, err)
	testkit.NoError(t, d.syncLog()) // there is no log, as after the last connection has closed
	testkit.NoError(t, os.WriteFile(path+"-wal", []byte("log"), 0o600))
	testkit.NoError(t, d.syncLog())
	testkit.NoError(t, os.Remove(path+"-wal"))
	testkit.NoError(t, os.Mkdir(path+"-wal", 0o700))
	testkit.ErrorContains(t, d.syncLog(), "x.db-wal")
}
