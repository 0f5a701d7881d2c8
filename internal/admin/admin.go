// Package admin contains operations on a database that only the command line and the web pages need: checks of the file, a search for
// orphan processes, the token for the pages, and moves to another database. They are not part of the public API of package runner.
package admin

import (
	"context"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/access"
	"example.com/runner/runner"
)

type (
	// Disk describes the filesystem that a database is on.
	Disk = db.Disk
	// Process is a process of this machine.
	Process = db.Process
	// ServerInfo describes the server that a database is on.
	ServerInfo = db.ServerInfo
)

func store(r *runner.Runner) *db.DB { return access.Store(r) }

// DiskOf describes the filesystem of the database at path. The file need not exist.
func DiskOf(path string) Disk { return db.DiskOf(path) }

// EngineVersion returns the version of SQLite in this program.
func EngineVersion() string { return db.EngineVersion() }

// SchemaVersion returns the version of the schema that this program writes.
func SchemaVersion() int { return db.SchemaVersion() }

// ParseAddress parses the path or address of a database.
func ParseAddress(text string) db.Address { return db.ParseAddress(text) }

// Insecure returns an error of kind jobs.ErrPermission if other users may write the file of a database or its directory. Root and the user
// of this process do not count as other users. A user with write access can run commands as the worker's user. Insecure does not open the
// database. It returns nil for a path that does not exist, and for a server.
func Insecure(address string) error { return db.Insecure(address) }

// InsecureFor does the same as Insecure for a process of the user with the number uid.
func InsecureFor(address string, uid int) error { return db.InsecureFor(address, uid) }

// FileOwner returns the number of the user who owns the database file. The result is false if the operating system does not tell the owner.
func FileOwner(path string) (uid int, ok bool) { return db.FileOwner(path) }

// UserName returns the name of the user with the number uid, or the number if the system does not know it.
func UserName(uid int) string { return db.UserName(uid) }

// OneTask is a task that AddAndWork adds and runs.
type OneTask = access.OneTask

// AddAndWork does the same as Runner.Work, but it adds one task and runs only
// this one. No other worker takes the task while this one lives, not even
// between two attempts. AddAndWork enqueues no tasks of schedules and deletes no
// old tasks.
func AddAndWork(ctx context.Context, r *runner.Runner, one OneTask) error {
	return access.AddAndWork(ctx, r, one)
}

// Created reports whether Open created the database file.
func Created(r *runner.Runner) bool { return store(r).Created() }

// UpgradedFrom returns the version that the schema had before Open upgraded it. It returns 0 if Open did not upgrade the schema.
func UpgradedFrom(r *runner.Runner) int { return store(r).UpgradedFrom() }

// Size returns the sizes of the database file and of its write-ahead log in bytes.
func Size(r *runner.Runner) (file, wal int64) { return store(r).Size() }

// Server describes the server that the database is on. It returns nil for a file.
func Server(r *runner.Runner) *ServerInfo { return store(r).Server() }

// Foreign returns an error if another program changed runner's own tables, or added triggers or indexes to them. See
// runner.Options.ForeignTriggers.
func Foreign(ctx context.Context, r *runner.Runner) error { return store(r).Foreign(ctx) }

// Integrity reads the whole file and returns a line for each error that it finds. If thorough is set, it also compares the indexes with
// their tables.
func Integrity(ctx context.Context, r *runner.Runner, thorough bool) ([]string, error) {
	return store(r).Integrity(ctx, thorough)
}

// MaxTimestamp returns the latest time at which a task was created, a task ended or a worker sent a heartbeat. If this time is in the
// future, somebody has set the clock back.
func MaxTimestamp(ctx context.Context, r *runner.Runner) (time.Time, error) {
	return store(r).MaxTimestamp(ctx)
}

// LastHeartbeat returns the time of the last heartbeat of any worker, or the zero time if there was no heartbeat.
func LastHeartbeat(ctx context.Context, r *runner.Runner) (time.Time, error) {
	return store(r).LastHeartbeat(ctx)
}

// Writable returns the error that the next write would probably return: jobs.ErrReplaced, jobs.ErrFull or nil. Writable itself writes
// nothing.
func Writable(r *runner.Runner) error {
	if err := store(r).Replaced(); err != nil {
		return err
	}
	return store(r).Space()
}

// Readers returns the processes that are reading the database now. SQLite can reset the write-ahead log only after these processes have
// ended their transactions. The list may be incomplete, because not every operating system tells who holds a lock.
func Readers(r *runner.Runner) []Process { return store(r).Readers() }

// Token returns the secret that a user needs for the web pages of the database. It reads the secret from a file; if the name of the file is
// empty, it uses the one that TokenFile returns. If the file does not exist, Token creates it with 256 random bits, and only this user can
// read it. Errors are of kind jobs.ErrPermission or jobs.ErrInvalid.
func Token(r *runner.Runner, file string) (string, error) { return store(r).Token(file) }

// TokenFile returns the path of the file that Token creates beside the database.
func TokenFile(r *runner.Runner) string { return store(r).TokenFile() }

// BusyRetries returns how often a write of this process found the database locked by another process and tried again.
func BusyRetries(r *runner.Runner) int64 { return store(r).BusyRetries() }

// Fenced returns how many results and heartbeats of this process the database refused. It refuses them if another worker has claimed the
// task in the meantime.
func Fenced(r *runner.Runner) int64 { return access.Fenced(r) }
