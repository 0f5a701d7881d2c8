//go:build linux || darwin || freebsd

package sqlite

import "golang.org/x/sys/unix"

// space returns how much this user may still write to the filesystem of path.
func space(path string) room {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return room{}
	}
	return room{free: int64(fs.Bavail) * int64(fs.Bsize), total: int64(fs.Blocks) * int64(fs.Bsize),
		inodes: int64(fs.Ffree), allInodes: int64(fs.Files)} // the types of the fields differ between systems
}
