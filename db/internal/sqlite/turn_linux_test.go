package sqlite

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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
		closeTurns()
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

// TestWriterIsWokenWhenLockIsReleased: the next transaction of a busy
// program can't get the lock before a writer that was woken has tried.
func TestWriterIsWokenWhenLockIsReleased(t *testing.T) {
	path, run := walClient(t)
	want := func(statement string, busy bool) {
		t.Helper()
		if err := run(statement); isBusy(err) != busy || err != nil && !busy {
			t.Fatalf("%s: got error %v, want busy: %v", statement, err, busy)
		}
	}
	x := turnsOf(path + "-shm")
	defer x.leave()

	want("BEGIN IMMEDIATE", false)
	if _, over := x.await(time.Microsecond); !over {
		t.Fatal("got the lock, want none while another connection has it")
	}

	for range 3 {
		woken := make(chan bool)
		go func() {
			locked, _ := x.await(time.Hour)
			woken <- locked
		}()
		for waiters := 0; waiters == 0; {
			x.mu.Lock()
			waiters = x.waiters
			x.mu.Unlock()
		}
		want("COMMIT", false)
		if !<-woken {
			t.Fatal("got no lock, want it after the commit")
		}
		want("BEGIN IMMEDIATE", true)
		x.release()
		want("BEGIN IMMEDIATE", false)
	}

	want("COMMIT", false)
	for active := true; active; { // nobody waits any more, so the lock was given back
		x.mu.Lock()
		active = x.active
		x.mu.Unlock()
	}

	want("BEGIN IMMEDIATE", false)
}

func TestTwoWritersOfProcessWaitForOneLock(t *testing.T) {
	path, run := walClient(t)
	if err := run("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}

	done := make(chan bool)
	for range 2 {
		go func() { done <- awaitTurn(path+"-shm", time.Hour) }()
	}
	if err := run("COMMIT"); err != nil {
		t.Fatal(err)
	}

	if first, second := <-done, <-done; !first || !second {
		t.Error("got no turn for one of the writers, want one for both")
	}
	x, y := turnsOf(path+"-shm"), turnsOf(path+"-shm")
	defer x.leave()
	defer y.leave()
	if x != y {
		t.Error("got two descriptors of one file, want one: closing one would drop the locks of the other")
	}
}

// TestWaitDropsNoLockOfProgram: closing a descriptor of the -shm file would
// drop the locks of all connections of the process.
func TestWaitDropsNoLockOfProgram(t *testing.T) {
	path, run := walClient(t)
	if err := run("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}

	awaitTurn(path+"-shm", time.Microsecond)
	closeTurns()

	if lockHolder(path+"-shm").PID == 0 {
		t.Error("got no holder of the write lock, want this process")
	}
}

// TestLockIsFoundBesideManyThatChange changes so many other locks that the
// kernel sometimes shows the list without the wanted one.
func TestLockIsFoundBesideManyThatChange(t *testing.T) {
	path, run := walClient(t)
	if err := run("BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}

	other, err := os.Create(filepath.Join(t.TempDir(), "other"))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()

	var changes sync.WaitGroup
	var done atomic.Bool
	changes.Go(func() {
		for i := int64(0); !done.Load(); i++ {
			kind := int16(unix.F_WRLCK)
			if i/900%2 == 1 {
				kind = unix.F_UNLCK
			}
			lock := unix.Flock_t{Type: kind, Whence: io.SeekStart, Start: i % 900 * 2, Len: 1}
			_ = unix.FcntlFlock(other.Fd(), unix.F_OFD_SETLK, &lock)
		}
	})
	defer changes.Wait()
	defer done.Store(true)

	for range 50 {
		if len(locks(path+"-shm", surely, func(l lock) bool { return l.write })) == 0 {
			t.Fatal("got no write lock on the -shm file, want that of this process")
		}
	}
}
