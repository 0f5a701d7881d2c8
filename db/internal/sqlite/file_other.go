//go:build !linux

package sqlite

import "example.com/runner/db/internal/engine"

// lockHolder returns 0, since this system does not show who holds a lock.
func lockHolder(string) (pid int, name string) { return 0, "" }

// othersOpen returns true, since this system does not show locks. So a busy writer rests from time to time.
func othersOpen(string) bool { return true }

// networkFS returns an empty name, since it does not know the filesystems of this system.
func networkFS(string) string { return "" }

// filesystem returns an empty name for the same reason.
func filesystem(string) string { return "" }

// readers returns nil, since this system does not show locks.
func readers(string) []engine.Process { return nil }
