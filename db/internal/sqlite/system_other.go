//go:build !linux

package sqlite

import (
	"os"
	"time"
)

// These functions need information that only Linux provides. On other systems they return a value that is safe in every case.

// networkFS returns an empty name, since this program does not know the filesystems of this system.
func networkFS(string) string { return "" }

// filesystem returns an empty name, since this program does not know the filesystems of this system.
func filesystem(string) string { return "" }

// keepOut asks SQLite whether another connection has the database open, since
// this system does not show locks. On Windows nobody can rename a file in use.
func keepOut(path string) (release func(), ok bool) {
	pool, err := Connect(path, "rw", "locking_mode(EXCLUSIVE)")
	if err != nil {
		return func() {}, true
	}
	defer pool.Close()
	_, err = pool.Exec("BEGIN EXCLUSIVE")
	return func() {}, !isBusy(err)
}

// inUse reports which files of a database are in use by others.
type inUse struct{ file, shared bool }

// usedBy returns the zero inUse, since this system does not show locks.
func usedBy(string) inUse { return inUse{} }

// lockShared does nothing, because no process looks for this lock on this system: usedBy cannot see locks here.
func lockShared(*os.File) error { return nil }

// isMountPoint returns false, since this program cannot read the mounts of this system.
func isMountPoint(string) bool { return false }

// awaitTurn returns false, since no lock of this system belongs to a descriptor.
func awaitTurn(string, time.Duration) bool { return false }

func closeTurns() {}

// checkEvery is the interval at which the watch checks for commits, since this system reports no writes (measured: a check every 10 ms
// costs 3 % of a core).
const checkEvery = 20 * time.Millisecond

// walEvents returns no events. It does not use kqueue, because kqueue needs a descriptor of the file, and closing that descriptor would
// drop SQLite's locks.
func walEvents(string) (events <-chan struct{}, stop func()) { return nil, func() {} }
