//go:build !linux

package sqlite

import "example.com/runner/db/internal/engine"

// lockHolder cannot tell on this system who holds a lock.
func lockHolder(string) (pid int, name string) { return 0, "" }

// othersOpen cannot tell either, and says what makes a busy writer polite.
func othersOpen(string) bool { return true }

// networkFS cannot tell on this system.
func networkFS(string) string { return "" }

// filesystem cannot tell either.
func filesystem(string) string { return "" }

// readers cannot tell on this system who reads.
func readers(string) []engine.Process { return nil }
