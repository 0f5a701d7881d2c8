package supervisor

import (
	"path/filepath"
	"strings"
)

// LockSuffix ends the names of the files of liveness locks.
const LockSuffix = ".lock"

// LockPath returns the path of the liveness lock of a worker in the directory beside its database. It returns an empty path for a text that is
// not the id of a worker, because the id comes from a file that others write.
func LockPath(dir, worker string) string {
	if worker == "" || strings.Trim(worker, "0123456789abcdef-") != "" {
		return ""
	}
	return filepath.Join(dir, worker+LockSuffix)
}
