package sqlite

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

// An event tells of a commit that is on its way. What is seen first may be an earlier one, and that must not be the end of the looking:
// with an fsync, the commit comes milliseconds after its event.
func TestACommitIsSeenWhoseEventCameBeforeAnotherCommitWasSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
		conn, err := pool.Connx(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		notices := make(chan bool, 100)
		w := &watch{db: &File{}, conn: conn, every: sweep, told: func(news bool) { notices <- news }}
		events, quit, over := make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
		go func() { defer close(over); w.run(t.Context(), events, quit) }()
		<-notices // the first look

		synctest.Wait()
		writer.MustExec("INSERT INTO t VALUES (1)")
		events <- struct{}{} // of the second commit, and nothing more will come
		<-notices            // the first one is seen
		for _, late := range []time.Duration{3 * time.Millisecond, 20 * time.Millisecond, 100 * time.Millisecond} {
			time.Sleep(late)
			writer.MustExec("INSERT INTO t VALUES (2)")
			committed := time.Now()
			<-notices
			if took := time.Since(committed); took > 4*late {
				t.Errorf("a commit is seen %v after it, %v after its event", took, late)
			}
		}
		close(quit)
		<-over
	})
}
