package sqlite

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// On a full disk SQLite can't even delete rows. So package db enqueues and
// claims no tasks while little space is left: that's for the results of running
// tasks.

const (
	maxReserve = 64 << 20 // bytes that stay free on a large disk
	minReserve = 4 << 20  // bytes that stay free on a small disk
)

// room is the space on a filesystem: bytes and files (inodes). It is zero if
// unknown, and some filesystems don't count files.
type room struct{ free, total, inodes, allInodes int64 }

// noInodes reports whether no file can be created, however many bytes are free.
func (r room) noInodes() bool { return r.allInodes > 0 && r.inodes == 0 }

// isFull reports whether not even SQLite's -shm file, which has 32 KiB, fits.
func (r room) isFull() bool { return r.total > 0 && r.free < 64<<10 }

// reserve is the number of bytes that stay free: a fiftieth of the disk, within
// the limits.
func (r room) reserve() int64 { return min(maxReserve, max(r.total/50, minReserve)) }

// check returns an error of kind ErrFull if less than the reserve is free.
func (r room) check(path string) error {
	if r.total == 0 || r.free >= r.reserve() {
		return nil
	}

	return &jobs.Error{Kind: jobs.ErrFull, Code: errcode.DiskFull, What: "the disk is nearly full: " + path,
		Why: []string{
			fmt.Sprintf("%d MiB are free, and %d MiB are kept for the results of what runs", r.free>>20, r.reserve()>>20),
			"nothing was written",
		},
		Hint: "free some space on its disk, then again"}
}

// fullError returns the error of a disk without space or without inodes.
func fullError(r room, path string, err error) error {
	e := &jobs.Error{Kind: jobs.ErrFull, Code: errcode.DiskFull, What: "the disk is full: " + path, Why: []string{"nothing was written"},
		Hint: "free some space on its disk, then again", Err: err}
	if r.noInodes() {
		e.What, e.Hint = "the disk has no inodes left: "+path, "remove some files on its disk, then again"
		e.Why = []string{"it has space, but it can't hold another file", "nothing was written"}
	}
	return e
}

// Disk describes the filesystem that a database is on.
type Disk struct {
	Kind        string // such as ext4; empty if unknown
	Network     bool   // whether it's on a network, where locks are unreliable
	ReadOnly    bool   // whether it's mounted read-only
	Free, Total int64  // bytes that this user may still write, and size of the disk; both are 0 if unknown
	Reserve     int64  // free bytes below which no task is enqueued or claimed
	NoInodes    bool   // whether it holds as many files as it can
}

// DiskOf describes the filesystem of the database at path, which needn't exist.
func DiskOf(path string) Disk {
	dir := filepath.Dir(path)
	r, network := space(dir), networkFS(dir)
	return Disk{
		Kind:     cmp.Or(network, filesystem(dir)),
		Network:  network != "",
		ReadOnly: errors.Is(writable(dir), syscall.EROFS),
		Free:     r.free,
		Total:    r.total,
		Reserve:  r.reserve(),
		NoInodes: r.noInodes(),
	}
}
