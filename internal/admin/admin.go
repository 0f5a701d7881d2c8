// Package admin has operations on a database that only the command line and the
// web pages need (checks of the file, a search for orphan processes, the token
// for the pages, moves to another database). The public API doesn't have them.
package admin

import (
	"context"

	"example.com/runner/db"
	"example.com/runner/runner"
)

type (
	// Run is an attempt that has ended or is still running.
	Run = db.Run
	// WorkerRuns is a worker with the attempts that it ran.
	WorkerRuns = db.WorkerRuns
	// DependencyLink says that task Task depends on task On, both ids.
	DependencyLink = db.DependencyLink
)

// Store returns the database of a Runner, for what the command line and the
// pages read or change in it and the public API doesn't have.
func Store(r *runner.Runner) *db.DB { return db.Of(r) }

// DiskOf describes the filesystem of the database at path, which needn't exist.
func DiskOf(path string) db.Disk { return db.DiskOf(path) }

// EngineVersion returns the version of SQLite in this program.
func EngineVersion() string { return db.EngineVersion() }

// SchemaVersion returns the version of the schema that this program writes.
func SchemaVersion() int { return db.SchemaVersion() }

// ParseAddress parses the path or address of a database.
func ParseAddress(text string) db.Address { return db.ParseAddress(text) }

// Insecure returns an error of kind jobs.ErrPermission if users other than root
// and uid may write the files of a database; see db.Insecure.
func Insecure(address string, uid int) error { return db.Insecure(address, uid) }

// FileOwner returns the uid that owns the database file. It returns false if
// the operating system doesn't tell.
func FileOwner(path string) (uid int, ok bool) { return db.FileOwner(path) }

// UserName returns the name of a uid, or the number if the system doesn't know
// it.
func UserName(uid int) string { return db.UserName(uid) }

// OneTask is a task that AddAndWork adds and runs.
type OneTask = db.OneTask

// AddAndWork adds one task and runs only this one, as Runner.Work does. No
// other worker takes it while this one lives, not even between two attempts.
// Schedules enqueue nothing meanwhile, and no old task is deleted.
func AddAndWork(ctx context.Context, r *runner.Runner, one OneTask) error {
	return db.WorkOne(ctx, r, one)
}

// Writable returns the error that the next write would probably return:
// jobs.ErrReplaced, jobs.ErrFull or nil. It writes nothing itself.
func Writable(r *runner.Runner) error {
	if err := Store(r).Replaced(); err != nil {
		return err
	}
	return Store(r).Space()
}
