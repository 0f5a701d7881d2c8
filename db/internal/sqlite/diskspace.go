package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	"example.com/runner/jobs"
)

// On a full disk SQLite cannot even delete rows. So package db enqueues and claims no tasks while little space is left. It keeps that space
// for the results of running tasks. Enqueues and claims continue when there is more space again.

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

// fullError returns the error of a disk without space or without inodes.
func fullError(r room, path string, err error) error {
	e := &jobs.Error{Kind: jobs.ErrFull, What: "the disk is full: " + path, Why: []string{"nothing was written"},
		Hint: "free some space on its disk, then again", Err: err}
	if r.noInodes() {
		e.What, e.Hint = "the disk has no inodes left: "+path, "remove some files on its disk, then again"
		e.Why = []string{"it has space, but it can't hold another file", "nothing was written"}
	}
	return e
}

// reserve returns the number of bytes that stay free on a disk. It is a fiftieth of the size of the disk, but not less than minReserve or
// more than maxReserve.
func reserve(total int64) int64 { return min(maxReserve, max(total/50, minReserve)) }

// checkSpace returns an error of kind ErrFull if less than the reserve is free. It returns nil if the sizes are unknown, that is 0.
func checkSpace(free, total int64, path string) error {
	if total == 0 || free >= reserve(total) {
		return nil
	}
	return &jobs.Error{Kind: jobs.ErrFull, What: "the disk is nearly full: " + path,
		Why: []string{fmt.Sprintf("%d MiB are free, and %d MiB are kept for the results of what runs", free>>20, reserve(total)>>20),
			"nothing was written"},
		Hint: "free some space on its disk, then again"}
}

// Disk describes the filesystem that a database is on.
type Disk struct {
	Kind        string // type of the filesystem, such as ext4; empty if unknown
	Network     bool   // whether the filesystem is on a network, where locks are unreliable
	ReadOnly    bool   // whether the filesystem is mounted read-only
	Free, Total int64  // number of bytes that this user may still write, and size of the disk in bytes; both are 0 if unknown
	Reserve     int64  // number of free bytes below which no task is enqueued or claimed
	NoInodes    bool   // whether no file can be created, because the filesystem holds as many as it can
}

// DiskOf describes the filesystem of the database at path, which need not exist.
func DiskOf(path string) Disk {
	dir := filepath.Dir(path)
	disk := Disk{Kind: filesystem(dir)}
	if kind := networkFS(dir); kind != "" {
		disk.Kind, disk.Network = kind, true
	}
	disk.ReadOnly = errors.Is(writable(dir), syscall.EROFS)
	r := space(dir)
	disk.Free, disk.Total, disk.NoInodes = r.free, r.total, r.noInodes()
	disk.Reserve = reserve(disk.Total)
	return disk
}
