package sqlite

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"example.com/runner/internal/testkit"
)

// walClient returns a connection of another program to a new file in WAL mode.
func walClient(t *testing.T) (path string, run func(statement string) error) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "q.db")
	pool, err := Connect(path, "rwc", "busy_timeout(0)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		pool.Close()
		sweepIndexes()
	})
	run = func(statement string) error {
		_, err := pool.ExecContext(context.Background(), statement)
		return err
	}
	for _, statement := range []string{"PRAGMA journal_mode = WAL", "CREATE TABLE t (x)"} {
		if err := run(statement); err != nil {
			t.Fatal(err)
		}
	}
	return path, run
}

// TestAWriterIsWokenWhenTheLockIsReleased: the next transaction of a busy
// program can't get the lock before a writer that was woken has tried.
func TestAWriterIsWokenWhenTheLockIsReleased(t *testing.T) {
	path, run := walClient(t)
	want := func(statement string, busy bool) {
		t.Helper()
		if err := run(statement); isBusy(err) != busy || err != nil && !busy {
			t.Fatalf("%s: got error %v, want busy: %v", statement, err, busy)
		}
	}
	index := openIndex(path + "-shm")
	defer index.close()
	want("BEGIN IMMEDIATE", false)
	if index.awaitWriter(time.Microsecond) {
		t.Fatal("got the lock, want none while another connection has it")
	}
	for range 3 {
		woken := make(chan bool)
		go func() { woken <- index.awaitWriter(time.Hour) }()
		for waiters := 0; waiters == 0; {
			index.mu.Lock()
			waiters = index.waiters
			index.mu.Unlock()
		}
		want("COMMIT", false)
		if !<-woken {
			t.Fatal("got no lock, want it after the commit")
		}
		want("BEGIN IMMEDIATE", true)
		index.release()
		want("BEGIN IMMEDIATE", false)
	}
	want("COMMIT", false)
	for active := true; active; { // nobody waits any more, so the lock was given back
		index.mu.Lock()
		active = index.active
		index.mu.Unlock()
	}
	want("BEGIN IMMEDIATE", false)
}

func TestTwoHandlesWaitForOneLock(t *testing.T) {
	path, run := walClient(t)
	index, second := openIndex(path+"-shm"), openIndex(path+"-shm")
	defer second.close()
	defer index.close()
	if index != second {
		t.Fatal("got two descriptors of one file, want one: closing one would drop the locks of the other")
	}
	if err := run("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	done := make(chan bool)
	for _, x := range []*walIndex{index, second} {
		go func() {
			got := x.awaitWriter(time.Hour)
			x.release()
			done <- got
		}()
	}
	if err := run("COMMIT"); err != nil {
		t.Fatal(err)
	}
	if first, second := <-done, <-done; !first || !second {
		t.Error("got no lock for one of the handles, want it for both")
	}
}

// TestAProgramKeepsItsLocksWhenAHandleIsClosed: closing a descriptor of the
// -shm file would drop the locks of all connections of the process.
func TestAProgramKeepsItsLocksWhenAHandleIsClosed(t *testing.T) {
	path, run := walClient(t)
	if err := run("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	openIndex(path + "-shm").close()
	sweepIndexes()
	if pid, _ := lockHolder(path + "-shm"); pid == 0 {
		t.Error("got no holder of the write lock, want this process")
	}
}

func TestAskingWhoUsesADatabaseKeepsNoDescriptor(t *testing.T) {
	setDriver()
	path := filepath.Join(t.TempDir(), "q.db")
	testkit.NoError(t, os.WriteFile(path+"-shm", make([]byte, 32<<10), 0o600))
	sweepIndexes()
	before := len(walIndexes.open)
	testkit.Equal(t, "use", usedBy(path), inUse{})
	testkit.NoError(t, os.Remove(path+"-shm"))
	sweepIndexes()
	testkit.Equal(t, "open descriptors", len(walIndexes.open), before)
}

func TestBusyReason(t *testing.T) {
	for _, c := range []struct {
		commits uint32
		pid     int
		want    string
	}{
		{0, 12, `another process has held the write lock for 10s (pid 12, "sqlite3")`},
		{0, 0, `another process has held the write lock for 10s`},
		{90, 12, `other connections committed 90 times within 10s and left no gap (pid 12, "sqlite3"); ` +
			`let programs that load many rows pause between transactions`},
	} {
		if got := busyReason(10*time.Second, c.commits, c.pid, "sqlite3"); got != c.want {
			t.Errorf("got %s\nwant %s", got, c.want)
		}
	}
}
