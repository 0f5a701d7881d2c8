package db

import (
	"testing"

	"example.com/runner/db/internal/sqlite"
)

// TestAWriteThatWaitsInTheQueueIsMade opens one file twice, in place of two processes.
func TestAWriteThatWaitsInTheQueueIsMade(t *testing.T) {
	d := openTest(t)
	other, err := Open(t.Context(), d.Path(), Options{Normal: true})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	file := d.engine.(*sqlite.File)
	if _, ok := file.Queued(); !ok {
		t.Fatal("no queue")
	}
	open := gate(t, d)
	done := make(chan error)
	go func() { done <- other.update(t.Context(), normal, func(*tx) error { return nil }) }()
	for other.BusyRetries() == 0 {
	}
	if held, _ := file.Queued(); !held {
		t.Error("the holder is not known")
	}
	open()
	if err := <-done; err != nil {
		t.Error(err)
	}
}
