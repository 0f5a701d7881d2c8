package db

import (
	"context"
	"errors"
	"path/filepath"
	"syscall"
	"time"
)

// The questions of doctor. quickCheck reads every page and finds damage; fullCheck compares indexes with their tables, too, and takes
// several times as long. Both list up to ten problems, or one row "ok".
var (
	quickCheck = query(`PRAGMA quick_check(10)`)
	fullCheck  = query(`PRAGMA integrity_check(10)`)
)

// selectLatest returns the latest times of several kinds in the file: 0 where there is none. Each is one seek, but for the few workers.
var selectLatest = query(`SELECT {greatest}(coalesce((SELECT created_at FROM {tasks} ORDER BY id DESC LIMIT 1), 0),
	coalesce((SELECT max(finished_at) FROM {tasks} WHERE finished_at IS NOT NULL), 0), coalesce((SELECT max(beat_at) FROM {workers}), 0))`)

// selectSeen returns when any worker gave a sign of life for the last time.
var selectSeen = query(`SELECT max(beat_at) FROM {workers}`)

// Process is a process of this machine.
type Process struct {
	PID  int
	Name string
}

// Integrity returns what is wrong with the file itself; nil: nothing. It reads all of it.
func (d *DB) Integrity(ctx context.Context, thorough bool) ([]string, error) {
	if d.server != nil { // pg_amcheck is for those who run the server
		return nil, nil
	}
	check := quickCheck
	if thorough {
		check = fullCheck
	}
	found, err := readRows[string](ctx, d, check)
	if len(found) == 1 && found[0] == "ok" {
		found = nil
	}
	return found, err
}

// Latest returns the latest time that anybody has written into the file.
func (d *DB) Latest(ctx context.Context) (time.Time, error) {
	at, err := readValue[number](ctx, d, selectLatest)
	return at.time(), err
}

// Seen returns when a worker gave a sign of life for the last time; zero: never.
func (d *DB) Seen(ctx context.Context) (time.Time, error) {
	at, err := readValue[number](ctx, d, selectSeen)
	return at.time(), err
}

// Readers lists the processes that read the file at this moment and keep its log from starting afresh, where the system tells.
func (d *DB) Readers() []Process {
	if d.server != nil {
		return nil
	}
	return readers(d.path + "-shm")
}

// Disk describes the filesystem that a database is on.
type Disk struct {
	Kind        string // ext4; empty: it cannot be told
	Network     bool   // locks cannot be trusted
	ReadOnly    bool   // it is mounted read-only
	Free, Total int64  // bytes that this user may write, and all; 0, 0: it cannot be told
	Reserve     int64  // with less than that free nothing is enqueued or claimed
}

// DiskOf describes the filesystem of the database at path, which need not exist.
func DiskOf(path string) Disk {
	dir := filepath.Dir(path)
	disk := Disk{Kind: filesystem(dir)}
	if kind := networkFS(dir); kind != "" {
		disk.Kind, disk.Network = kind, true
	}
	disk.ReadOnly = errors.Is(writable(dir), syscall.EROFS)
	disk.Free, disk.Total = space(dir)
	disk.Reserve = reserve(disk.Total)
	return disk
}
