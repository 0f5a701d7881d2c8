//go:build unix

package sqlite

import (
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// fileID identifies a file independently of its name.
type fileID struct{ device, inode uint64 }

func identify(info fs.FileInfo) fileID {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fileID{}
	}
	return fileID{uint64(stat.Dev), uint64(stat.Ino)} // the types of these fields differ between operating systems
}

// statFile identifies the file at path.
func statFile(path string) (stamp, error) {
	var stat unix.Stat_t
	for {
		err := unix.Stat(path, &stat)
		if err == nil {
			return stamp{fileID{uint64(stat.Dev), uint64(stat.Ino)}, stat.Size}, nil
		}
		if err != unix.EINTR {
			return stamp{}, &fs.PathError{Op: "stat", Path: path, Err: err}
		}
	}
}

// links returns the number of hard links of the file.
func links(info fs.FileInfo) uint64 {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 1
	}
	return uint64(stat.Nlink)
}

// syncDir syncs a directory, so that new, renamed and removed names of files survive a power failure.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// writable returns an error if this process is not permitted to write to a file or directory: syscall.EACCES, syscall.EPERM or
// syscall.EROFS. It returns nil if the file does not exist.
func writable(path string) error {
	switch err := unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS); err {
	case unix.EACCES, unix.EPERM, unix.EROFS:
		return err
	}
	return nil
}
