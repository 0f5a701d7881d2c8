// Package admin contains operations on a database for the command line and the pages: checks of the file, orphan processes, the token of
// the pages, moves to another database. They are not part of the public API of package runner.
package admin

import (
	"context"
	"fmt"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/access"
	"example.com/runner/jobs"
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

// EngineVersion returns the version of SQLite that is linked in.
func EngineVersion() string { return db.EngineVersion() }

// SchemaVersion returns the version of the schema that this program writes.
func SchemaVersion() int { return db.SchemaVersion() }

// ParseAddress parses the path or address of a database.
func ParseAddress(text string) db.Address { return db.ParseAddress(text) }

// Insecure returns an error of kind jobs.ErrPermission if another user than this process's user or root may write the database at path or
// its directory. Write access is command execution as the worker's user. The function opens nothing. It returns nil for a path that does
// not exist.
func Insecure(path string) error { return db.Insecure(path) }

// Directory returns the directory of the files that belong to a database: locks of workers, results of commands, sockets of followers.
func Directory(r *runner.Runner) string { return store(r).Dir() }

// AddThen is Runner.Add for one task. It calls then with the result before the transaction commits, when no worker can find the task.
// An error of then undoes the change. then must not take long, because no other process can write meanwhile.
func AddThen(ctx context.Context, r *runner.Runner, spec jobs.Spec, then func(runner.Enqueued) error) (added runner.Enqueued, err error) {
	err = access.AddThen(ctx, r, spec, func(i db.Inserted) error {
		added = runner.Enqueued(i)
		return then(added)
	})
	return added, err
}

// WorkOnly works like Runner.Work, but runs only the task with this id. It enqueues no tasks of schedules and deletes no old tasks.
func WorkOnly(ctx context.Context, r *runner.Runner, id int64) error {
	return access.WorkOnly(ctx, r, id)
}

// Created reports whether Open made the file.
func Created(r *runner.Runner) bool { return store(r).Created() }

// UpgradedFrom returns the version of the schema that Open has upgraded, or 0 if it has upgraded none.
func UpgradedFrom(r *runner.Runner) int { return store(r).UpgradedFrom() }

// Size returns the bytes of the database file and of its write-ahead log.
func Size(r *runner.Runner) (file, wal int64) { return store(r).Size() }

// Server describes the server that the database is on. It returns nil for a file.
func Server(r *runner.Runner) *ServerInfo { return store(r).Server() }

// Foreign returns an error if runner's own tables were changed, or if triggers or indexes were added to them: see
// runner.Options.ForeignTriggers.
func Foreign(ctx context.Context, r *runner.Runner) error { return store(r).Foreign(ctx) }

// Integrity reads the whole file and returns a line for each damage. thorough compares the indexes with their tables, too.
func Integrity(ctx context.Context, r *runner.Runner, thorough bool) ([]string, error) {
	return store(r).Integrity(ctx, thorough)
}

// MaxTimestamp returns the latest time that the database holds. A time ahead of the clock means that a clock was set back.
func MaxTimestamp(ctx context.Context, r *runner.Runner) (time.Time, error) {
	return store(r).MaxTimestamp(ctx)
}

// LastHeartbeat returns the time of the last heartbeat of any worker. It is zero if there was none.
func LastHeartbeat(ctx context.Context, r *runner.Runner) (time.Time, error) {
	return store(r).LastHeartbeat(ctx)
}

// ListenCheck returns an error when a database on a server does not send notifications to this process. Workers then find tasks
// late. patience is the longest time to wait for a notification.
func ListenCheck(ctx context.Context, r *runner.Runner, patience time.Duration) error {
	return store(r).CheckNotifications(ctx, patience)
}

// Writable returns the error that the next write would probably return, without writing: jobs.ErrReplaced, jobs.ErrFull or nil.
func Writable(r *runner.Runner) error {
	if err := store(r).Replaced(); err != nil {
		return err
	}
	if Server(r) != nil {
		return nil
	}
	if disk := db.DiskOf(r.Path()); disk.Total > 0 && disk.Free < disk.Reserve {
		return fmt.Errorf("%w: %d bytes are left", jobs.ErrFull, disk.Free)
	}
	return nil
}

// Readers returns the processes that read the database now. The write-ahead log can only be reset after they end their transactions. The
// list may be incomplete, because not every system and not every lock names its process.
func Readers(r *runner.Runner) []Process { return store(r).Readers() }

// Token returns the secret that opens the pages of the database, from a file. An empty name means the file that TokenFile returns.
// A missing file is created, with 256 random bits, readable for this user alone. Errors are of kind jobs.ErrPermission or
// ErrInvalid.
func Token(r *runner.Runner, file string) (string, error) { return store(r).Token(file) }

// TokenFile returns the path of the file that Token creates beside the database.
func TokenFile(r *runner.Runner) string { return store(r).TokenFile() }

// BusyRetries returns how often writes of this process found the database locked by another process and tried again.
func BusyRetries(r *runner.Runner) int64 { return store(r).BusyRetries() }

// Fenced returns how many results and heartbeats of this process were refused because their task belonged to a newer generation.
func Fenced(r *runner.Runner) int64 { return access.Fenced(r) }
