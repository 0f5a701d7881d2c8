package db

import (
	"fmt"
	"path/filepath"

	"example.com/runner/jobs"
)

// On a full disk SQLite cannot even delete rows. So while little space is left, tasks are neither enqueued nor claimed, and the results of running
// tasks still fit. Work goes on by itself when there is space again.

const (
	roomMost  = 64 << 20 // bytes that stay free on a large disk
	roomLeast = 4 << 20  // bytes that stay free on a small disk
	roomEvery = 1000     // tasks between two looks at the disk in one transaction
)

// reserve returns how many bytes stay free on a disk of total bytes: a fiftieth, within the bounds.
func reserve(total int64) int64 { return min(roomMost, max(total/50, roomLeast)) }

// room is the result of the last look at the disk. Transactions that follow each other closely share it.
type room struct {
	asked int
	err   error
}

// room returns an error of kind ErrFull if the disk has no space for another task. It does not look at the disk each time; a look takes 1 µs.
func (t *tx) room() error {
	if t.db.server != nil { // a server reports a full disk itself
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
	if total == 0 || free >= reserve(total) { // 0: not known
		return nil
	}
	return &jobs.Error{Kind: jobs.ErrFull, What: "the disk is nearly full: " + path,
		Why:  []string{fmt.Sprintf("%d MiB are free, and %d MiB are kept for the results of what runs", free>>20, reserve(total)>>20), "nothing was written"},
		Hint: "free some space on its disk, then again"}
}
