//go:build !linux

package sqlite

import "os"

// inUse is what other open files hold of a database's files.
type inUse struct{ file, shared bool }

// usedBy cannot tell on this system.
func usedBy(string) inUse { return inUse{} }

// lockShared is not needed where usedBy cannot tell.
func lockShared(*os.File) error { return nil }

// isMountPoint cannot tell on this system.
func isMountPoint(string) bool { return false }

// sharedMemory cannot be read on this system.
type sharedMemory struct{}

func openShared(string) *sharedMemory                  { return nil }
func (*sharedMemory) checkpoints() (checkpoints, bool) { return checkpoints{}, false }
func (*sharedMemory) close()                           {}
