package sqlite

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"example.com/runner/db/internal/engine"
	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// Resolve returns the absolute path of a file, with all symlinks resolved.
func Resolve(path string) (string, error) {
	if path == "" {
		return "", &jobs.Error{Kind: jobs.ErrInvalid, Code: errcode.NoPath, What: "no path for the database"}
	}
	if err := NotPath(path); err != nil {
		return "", err
	}

	path, err := filepath.Abs(path)
	if err != nil {
		return "", engine.FileError(err, path)
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real, nil
	}
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil { // the file doesn't exist yet
		return filepath.Join(dir, filepath.Base(path)), nil
	}

	return path, nil
}

// find checks the file without opening it as a database, and creates an empty
// one if it's missing and Options.Create is set.
func (d *File) find() error {
	if err := d.checkFilesystem(); err != nil {
		return err
	}

	info, err := os.Stat(d.path)
	missing := errors.Is(err, fs.ErrNotExist)
	switch to, _ := os.Readlink(d.path); {
	case missing && to != "":
		return dangling(d.path, to)
	case missing:
	case err != nil:
		return engine.FileError(err, d.path)
	case info.IsDir():
		return &jobs.Error{Kind: jobs.ErrSchema, Code: errcode.IsDirectory, Subject: d.path,
			What: d.path + " is a directory, not a database", Hint: "the path of a file in it"}
	case info.Size() == 1: // SQLite treats a file of one byte as an empty one
		return notRunner(d.path, " is not a runner database", "it is not an SQLite file; nothing was changed")
	case !info.Mode().IsRegular():
		return notRunner(d.path, " is not a regular file")
	case links(info) > 1:
		return &jobs.Error{Kind: jobs.ErrPermission, Code: errcode.HardLinked, Subject: d.path, What: d.path + " has more than one name",
			Why:  []string{"it is hard linked: opened by two names, a database loses its write-ahead log; nothing was changed"},
			Hint: "remove the other hard links, or use another file; if a restore was stopped, restore again"}
	}

	if isMountPoint(d.path) {
		return &jobs.Error{Kind: jobs.ErrPermission, Code: errcode.MountPoint, Subject: d.path, What: d.path + " is a mount point",
			Why: []string{"the file is mounted without the directory that holds its write-ahead log: other paths to it have another " +
				"log; nothing was changed"},
			Hint: "mount the directory of the database, or use another file"}
	}
	if err := cmp.Or(d.checkFilesInUse(), d.checkBeside()); err != nil {
		return err
	}

	if missing {
		info, err = d.create()
		if errors.Is(err, fs.ErrExist) { // another process has just created it
			return d.find()
		}
		if err != nil {
			return err
		}
	}

	d.id = identify(info)
	if log, err := os.Stat(d.logPath); err == nil {
		d.logSizeBefore = log.Size()
	}
	if d.options.Create { // SQLite would fail only at the first write
		if err := writable(d.path); err != nil {
			return readOnly(err, d.path)
		}
	}

	return nil
}

// create makes an empty file with mode 0600, which SQLite also gives to the
// files beside it.
func (d *File) create() (fs.FileInfo, error) {
	if !d.options.Create {
		return nil, &jobs.Error{Kind: jobs.ErrNoDatabase, Code: errcode.NoDatabase, Subject: d.path,
			What: "no database at " + d.path, Err: fs.ErrNotExist}
	}
	if err := d.checkDir(false); err != nil {
		return nil, err
	}

	file, err := os.OpenFile(d.path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, engine.FileError(err, d.path)
	}
	defer file.Close() // drops SQLite's locks on the file, but no connection is open yet

	d.created = true
	return file.Stat()
}

// checkFilesystem refuses a network filesystem.
func (d *File) checkFilesystem() error {
	kind := networkFS(filepath.Dir(d.path))
	if kind == "" || d.options.UnsafeFS {
		return nil
	}
	return &jobs.Error{Kind: jobs.ErrPermission, Code: errcode.NetworkFilesystem, Subject: d.path,
		What: d.path + " is on a network filesystem (" + kind + ")",
		Why:  []string{"locks and shared memory do not work there as a database needs them; nothing was changed"},
		Hint: "a path on a local disk"}
}

// dangling returns the error of a symlink to a file that doesn't exist.
func dangling(path, to string) error {
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(path), to)
	}
	return &jobs.Error{Kind: jobs.ErrNoDatabase, Code: errcode.DanglingSymlink, Subject: to,
		What: path + " is a symlink to " + to + ", which does not exist", Hint: to}
}
