//go:build unix

package owner

import (
	"io/fs"
	"syscall"
)

// Of returns whose a file is. ok is false where the system has no owners.
func Of(info fs.FileInfo) (uid, gid int, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, false
	}
	return int(stat.Uid), int(stat.Gid), true
}

// NoFollow keeps a link in a file's place from leading elsewhere.
const NoFollow = syscall.O_NOFOLLOW
