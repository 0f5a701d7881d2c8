//go:build !linux

package db

// lockHolder cannot tell on this system who holds a lock.
func lockHolder(string) (pid int, name string) { return 0, "" }
