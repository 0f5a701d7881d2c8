package db

import (
	"fmt"
	"path/filepath"

	"example.com/runner/jobs"
)

// On a full disk not even a DELETE works in SQLite. So nothing new is taken on while little is left: no task is enqueued and none is
// claimed, and the results of what runs still fit. It goes on by itself when there is room again.

const (
	roomMost  = 64 << 20 // bytes that are kept free on a large disk
	roomLeast = 4 << 20  // and on a small one, where it is a fiftieth of it
	roomEvery = 1000     // tasks after which one transaction asks again
)

// reserve is how many bytes are to be left free on a disk of total bytes.
func reserve(total int64) int64 { return min(roomMost, max(total/50, roomLeast)) }

// room is what a transaction knows of the disk, and those of the writer that follow it closely.
type room struct {
	asked int
	err   error
}

// room returns an error of kind ErrFull when the disk has too little left for one more task. It asks the system now and then (1 µs).
func (t *tx) room() error {
	if t.db.server != nil { // its disk is its own affair: it says so when it is full
		return nil
	}
	if t.space.asked%roomEvery == 0 {
		free, total := space(filepath.Dir(t.db.path))
		t.space.err = lacksRoom(free, total, t.db.path)
	}
	t.space.asked++
	return t.space.err
}

func lacksRoom(free, total int64, path string) error {
	if total == 0 || free >= reserve(total) { // 0: it cannot be told
		return nil
	}
	return &jobs.Problem{Kind: jobs.ErrFull, What: "the disk is nearly full: " + path,
		Why: []string{fmt.Sprintf("%d MiB are free, and %d MiB are kept for the results of what runs", free>>20, reserve(total)>>20), "nothing was written"},
		Try: "free some space on its disk, then again"}
}
