//go:build !linux && !darwin && !freebsd

package sqlite

// space cannot be told on this system.
func space(string) (free, total int64) { return 0, 0 }
