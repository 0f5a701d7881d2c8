//go:build unix

package sqlite

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

func identify(info fs.FileInfo) fileID {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}
	}
	return fileID{uint64(stat.Dev), uint64(stat.Ino)} // the types of these fields differ between operating systems
}

// links returns the number of hard links of the file.
func links(info fs.FileInfo) uint64 {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 1
	}
	return uint64(stat.Nlink)
}

// syncDir syncs a directory, so that new, renamed and removed names survive a
// power failure.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// writable returns EACCES, EPERM or EROFS if this process may not write to a
// file or directory.
func writable(path string) error {
	switch err := unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS); err {
	case unix.EACCES, unix.EPERM, unix.EROFS:
		return err
	}
	return nil
}

// space returns how much this user may still write to the filesystem of path.
func space(path string) room {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); err != nil {
		return room{}
	}

	return room{ // the types of the fields differ between systems
		free:      int64(fs.Bavail) * int64(fs.Bsize),
		total:     int64(fs.Blocks) * int64(fs.Bsize),
		inodes:    int64(fs.Ffree),
		allInodes: int64(fs.Files),
	}
}
