//go:build !linux

package sqlite

import (
	"os"
	"time"
)

// These functions need what only Linux tells. On other systems they return a
// value that is safe in every case.

func networkFS(string) string  { return "" }
func filesystem(string) string { return "" }
func isMountPoint(string) bool { return false }

// keepOut asks SQLite whether another connection has the database open, since
// this system doesn't show locks. On Windows nobody can rename a file in use.
func keepOut(path string) (release func(), ok bool) {
	pool, err := Connect(path, "rw", "locking_mode(EXCLUSIVE)")
	if err != nil {
		return func() {}, true
	}
	defer pool.Close()

	_, err = pool.Exec("BEGIN EXCLUSIVE")
	return func() {}, !isBusy(err)
}

// inUse says which files of a database are in use, which this system doesn't
// show.
type inUse struct{ file, shared bool }

func usedBy(string) inUse { return inUse{} }

// lockShared does nothing: usedBy can't see its lock here.
func lockShared(*os.File) error { return nil }

// awaitTurn returns false, since no lock of this system belongs to a
// descriptor.
func awaitTurn(string, time.Duration) bool { return false }

func closeTurns() {}

// checkEvery is the time between two checks for commits, since this system
// reports no writes (measured: a check every 10 ms costs 3 % of a core).
const checkEvery = 20 * time.Millisecond

// walEvents sends none. kqueue would need a descriptor of the file, and closing
// it would drop SQLite's locks.
func walEvents(string) (events <-chan struct{}, stop func()) { return nil, func() {} }
