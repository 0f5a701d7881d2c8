package sqlite

import (
	"io/fs"
	"os"
	"path/filepath"

	"example.com/runner/db/internal/owner"
	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// CheckWriters checks the file, its directory, and the directory PATH.d beside it. On systems without owners and modes it returns nil.
func (p Path) CheckWriters(uid int) error {
	path, err := Resolve(string(p))
	if err != nil {
		return err
	}
	for _, name := range []string{filepath.Dir(path), path, path + ".d"} {
		info, err := os.Stat(name)
		if err != nil {
			continue // ignore this error, because Open reports it later
		}
		if why, try := owner.Exposed(info, info.Mode(), uid); why != "" {
			hint := try + " " + name
			if info.IsDir() && info.Mode()&fs.ModeSticky != 0 { // do not suggest a chmod: a directory like /tmp is meant for several users
				hint = "a database in a directory of your own"
			}
			return &jobs.Error{Kind: jobs.ErrPermission, Code: errcode.ExposedDatabase, Subject: name, What: name + " " + why,
				Why: []string{"whoever may write the database may run commands as the worker's user"}, Hint: hint}
		}
	}
	return nil
}
