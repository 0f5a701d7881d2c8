//go:build !linux

package sqlite

import "os"

// inUse reports which files of a database other open files use.
type inUse struct{ file, shared bool }

// usedBy returns the zero inUse, since this system does not show locks.
func usedBy(string) inUse { return inUse{} }

// lockShared does nothing, since usedBy cannot see such a lock on this system.
func lockShared(*os.File) error { return nil }

// isMountPoint returns false, since it does not know the mounts of this system.
func isMountPoint(string) bool { return false }

// sharedMemory is empty, since the shared memory cannot be read on this system.
type sharedMemory struct{}

func openShared(string) *sharedMemory                  { return nil }
func (*sharedMemory) checkpoints() (checkpoints, bool) { return checkpoints{}, false }
func (*sharedMemory) close()                           {}
