package sqlite

import (
	"io/fs"
	"os"
)

// fileID is empty on Windows. Windows does not allow anybody to replace the files of an open database, so no code needs to compare files.
type fileID struct{}

func identify(fs.FileInfo) fileID { return fileID{} }

// statFile returns an error if there is no file at path. The stamp that it returns is always empty.
func statFile(path string) (stamp, error) {
	_, err := os.Stat(path)
	return stamp{}, err
}

// links returns 1 on this system.
func links(fs.FileInfo) uint64 { return 1 }

// syncDir does nothing on this system.
func syncDir(string) error { return nil }

// writable returns nil on this system: the first write reports an error.
func writable(string) error { return nil }
