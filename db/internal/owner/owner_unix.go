//go:build unix

package owner

import (
	"io/fs"
	"syscall"
)

// Of returns the user and the group that own a file. ok is false if the system
// doesn't report owners.
func Of(info fs.FileInfo) (uid, gid int, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(stat.Uid), int(stat.Gid), true
}

// NoFollow is the flag of open that rejects a symbolic link.
const NoFollow = syscall.O_NOFOLLOW

// NoBlock is the flag of open that doesn't wait for the other end of a FIFO.
const NoBlock = syscall.O_NONBLOCK
