//go:build linux || darwin || freebsd

package sqlite

import "golang.org/x/sys/unix"

// space returns how many bytes this user may still write to the filesystem of path, and its size in bytes.
func space(path string) (free, total int64) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return 0, 0
	}
	return int64(fs.Bavail) * int64(fs.Bsize), int64(fs.Blocks) * int64(fs.Bsize) // the types of the fields differ between systems
}
