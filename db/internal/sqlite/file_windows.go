package sqlite

import (
	"io/fs"
	"os"
)

// fileID would tell one file from another. Windows does not let an open database be replaced, so nothing is compared.
type fileID struct{}

func identify(fs.FileInfo) fileID { return fileID{} }

// statFile says only whether there is a file at path.
func statFile(path string) (stamp, error) {
	_, err := os.Stat(path)
	return stamp{}, err
}

// links is not asked on this system.
func links(fs.FileInfo) uint64 { return 1 }

// syncDir has no counterpart on this system.
func syncDir(string) error { return nil }

// writable leaves it to the first write on this system.
func writable(string) error { return nil }
