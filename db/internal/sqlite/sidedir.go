package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/owner"
	"example.com/runner/jobs"
)

// Dir returns the directory beside the file.
func (d *File) Dir() string { return d.path + ".d" }

// MakeDir creates the directory Dir if it is missing, and otherwise checks it.
// Open creates it together with a new file, but a user may have copied the file
// without it.
func (d *File) MakeDir() error {
	if err := os.Mkdir(d.Dir(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return engine.FileError(err, d.Dir())
	}
	return d.checkDir(true)
}

// checkDir returns an error if another user could plant files or links in Dir:
// this process would write to whatever they lead to. A missing Dir is fine. The
// owner of the database may own Dir, too. A caller that follows no links may
// accept a directory that others may write (shared), as work --insecure-perms
// does.
func (d *File) checkDir(shared bool) error {
	dir := d.Dir()
	info, err := os.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return engine.FileError(err, dir)
	case !info.IsDir():
		return &jobs.Error{Kind: jobs.ErrPermission, What: dir + " is not a directory",
			Why: []string{"runner keeps its locks and the token there"}, Hint: fmt.Sprintf("mv %s %s.old", dir, dir)}
	}

	me := os.Geteuid()
	if file, err := os.Stat(d.path); err == nil {
		uid, _, ok := owner.Of(file)
		if dirUID, _, _ := owner.Of(info); ok && uid == dirUID {
			me = uid
		}
	}

	mode := info.Mode()
	if shared {
		mode &^= 0o022
	}

	why, try := owner.Exposed(info, mode, me)
	if why == "" {
		return nil
	}

	return &jobs.Error{Kind: jobs.ErrPermission, What: dir + " " + why,
		Why:  []string{"another user could put a link there, and runner would write to the file that it leads to"},
		Hint: try + " " + dir}
}

// initLock is the file that lets only one process at a time create or upgrade
// the tables.
func (d *File) initLock() string { return d.Dir() + "/init.lock" }

// checkBeside refuses a log, a WAL-index, a journal or a lock file that isn't a
// regular file: we would open whatever a link leads to.
func (d *File) checkBeside() error {
	for _, name := range []string{d.logPath, d.sharedPath, d.path + "-journal", d.initLock()} {
		if info, err := os.Lstat(name); err == nil && !info.Mode().IsRegular() {
			return &jobs.Error{Kind: jobs.ErrPermission, What: name + " is not a regular file",
				Why: []string{"runner would write to it; nothing was changed"}, Hint: "rm " + name + ", if no process uses it"}
		}
	}
	return nil
}
