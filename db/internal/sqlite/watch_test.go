package sqlite

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestWatchFindsCommitThatComesAfterItsEvent checks that after an event the
// watch continues to look for commits, even if it has found one. The commit
// that it found may be an earlier one. A process writes to the log, which
// causes the event, and then waits for an fsync. Only then is the commit
// visible, possibly milliseconds after the event.
func TestWatchFindsCommitThatComesAfterItsEvent(t *testing.T) {
	t.Run("punctual check", func(t *testing.T) { synctest.Test(t, func(t *testing.T) { checkAfterEvent(t, 0) }) })
	t.Run("late check", func(t *testing.T) { synctest.Test(t, func(t *testing.T) { checkAfterEvent(t, time.Second) }) })
}

// checkAfterEvent makes commits after an event whose first check takes as long
// as late.
func checkAfterEvent(t *testing.T, late time.Duration) {
	path := filepath.Join(t.TempDir(), "test.db")
	writer, err := Connect(path, "rwc")
	if err != nil {
		t.Fatal(err)
	}
	defer writer.Close()
	writer.MustExec("PRAGMA journal_mode = WAL")
	writer.MustExec("CREATE TABLE t (n)")
	pool, err := Connect(path, "rw")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	notices := make(chan bool, 100)
	w := &watch{db: &File{}, conn: pool, every: checkEvery, notify: func(wakeups bool) { notices <- wakeups }}
	events, quit, done := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	w.check()
	<-notices // the first check always sends a notification
	w.notify = func(wakeups bool) {
		time.Sleep(late)
		late = 0
		notices <- wakeups
	}
	go func() { defer close(done); w.run(t.Context(), events, quit) }()

	synctest.Wait()
	writer.MustExec("INSERT INTO t VALUES (1)")
	events <- struct{}{} // this is the only event: the commits in the loop below cause none
	<-notices            // the watch has found the commit of the INSERT above
	delays := []time.Duration{3 * time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond, 3 * time.Second, time.Minute}
	for _, delay := range delays {
		time.Sleep(delay)
		writer.MustExec("INSERT INTO t VALUES (2)")
		committed := time.Now()
		<-notices
		if took, limit := time.Since(committed), min(4*delay, sureEvery); took > limit {
			t.Errorf("commit %v after the previous one: got a notice after %v, want at most %v", delay, took, limit)
		}
	}
	close(quit)
	<-done
}

func TestWatchKeepsNoConnectionThatReadsNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	if err := os.WriteFile(path, []byte(strings.Repeat("no database ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}

	file, err := statFile(path)
	if err != nil {
		t.Fatal(err)
	}

	notices := 0
	w := &watch{db: &File{path: path, id: file.id}, notify: func(bool) { notices++ }}

	if w.check(); notices != 1 || w.conn != nil {
		t.Errorf("got %d notices, connection %v; want 1 notice and no connection", notices, w.conn)
	}
}
