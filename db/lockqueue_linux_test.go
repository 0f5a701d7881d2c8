package db

import (
	"testing"

	"example.com/runner/db/internal/sqlite"
)

// TestAWriteThatWaitsInTheLockQueueSucceeds checks a write that waits in the lock queue, in which processes wait for the write lock of a
// file. It opens the file twice. The two handles act as two processes.
func TestAWriteThatWaitsInTheLockQueueSucceeds(t *testing.T) {
	d := openTest(t)
	other, err := Open(t.Context(), d.Path(), Options{Normal: true})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	file := d.engine.(*sqlite.File)
	if _, ok := file.Queued(); !ok {
		t.Fatal("got no lock queue, want one")
	}
	release := blockWrites(t, d)
	done := make(chan error)
	go func() { done <- other.update(t.Context(), normal, func(*tx) error { return nil }) }()
	for other.BusyRetries() == 0 {
	}
	if held, _ := file.Queued(); !held {
		t.Error("got no holder of the lock, want one")
	}
	release()
	if err := <-done; err != nil {
		t.Errorf("the write that waited: got error %v, want none", err)
	}
}
