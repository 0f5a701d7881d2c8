package sqlite

import (
	"io/fs"
	"os"
	"path/filepath"

	"example.com/runner/db/internal/owner"
	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// CheckWriters checks who may write the file, its directory, and PATH.d beside
// it. Without owners and modes, as on Windows, it returns nil.
func (p Path) CheckWriters(uid int) error {
	path, err := Resolve(string(p))
	if err != nil {
		return err
	}

	for _, name := range []string{filepath.Dir(path), path, path + ".d"} {
		info, err := os.Stat(name)
		if err != nil {
			continue // Open reports it later
		}
		if why, try := owner.Exposed(info, info.Mode(), uid); why != "" {
			hint := try + " " + name
			// Whoever owns the file itself works with it, and a chown would
			// lock them out.
			if user, ok := foreignOwner(path, uid); ok {
				hint = "run the worker as " + user
			}
			if info.IsDir() && info.Mode()&fs.ModeSticky != 0 { // no chmod: a directory like /tmp is meant for several users
				hint = "a database in a directory of your own"
			}
			return &jobs.Error{Kind: jobs.ErrPermission, Code: errcode.ExposedDatabase, Subject: name, What: name + " " + why,
				Why: []string{"whoever may write the database may run commands as the worker's user"}, Hint: hint}
		}
	}

	return nil
}

// foreignOwner returns the owner of the file at path, unless it's root or the
// user with the number uid.
func foreignOwner(path string, uid int) (name string, ok bool) {
	info, err := os.Stat(path)
	if err != nil {
		return "", false
	}
	user, _, ok := owner.Of(info)
	return owner.UserName(user), ok && user != 0 && user != uid
}
