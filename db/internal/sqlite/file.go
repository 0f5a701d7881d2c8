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
	if dir, err := filepath.EvalSymlinks(filepath.Dir(path)); err == nil { // the file does not exist yet
		return filepath.Join(dir, filepath.Base(path)), nil
	}
	return path, nil
}

// find checks the file without opening it as a database. If there is no file and Options.Create is set, find creates an empty file.
func (d *File) find() error {
	if err := d.checkFilesystem(); err != nil {
		return err
	}
	info, err := os.Stat(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		if to, _ := os.Readlink(d.path); to != "" {
			return dangling(d.path, to)
		}
		if err := cmp.Or(d.checkBeside(), d.checkFilesInUse()); err != nil {
			return err
		}
	}
	if errors.Is(err, fs.ErrNotExist) && d.options.Create {
		if err := d.checkDir(false); err != nil {
			return err
		}
		var file *os.File
		// The file has mode 0600 from its creation. SQLite gives the -wal and -shm files the same mode.
		if file, err = os.OpenFile(d.path, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600); err == nil {
			d.created = true
			err = file.Close() // closing a file drops SQLite's locks on it, but no connection is open yet
		} else if errors.Is(err, fs.ErrExist) { // another process has just created the file
			err = nil
		}
		if err == nil {
			info, err = os.Stat(d.path)
		}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) && !d.options.Create:
		return &jobs.Error{Kind: jobs.ErrNoDatabase, Code: errcode.NoDatabase, Subject: d.path, What: "no database at " + d.path, Err: err}
	case err != nil:
		return engine.FileError(err, d.path)
	case info.IsDir():
		return &jobs.Error{Kind: jobs.ErrSchema, Code: errcode.IsDirectory, Subject: d.path,
			What: d.path + " is a directory, not a database", Hint: "the path of a file in it"}
	case info.Size() == 1: // SQLite treats a file of one byte as an empty one
		return notRunner(d.path, " is not a runner database", "it is not an SQLite file; nothing was changed")
	case !info.Mode().IsRegular():
		return notRunner(d.path, " is not a regular file")
	}
	d.id = identify(info)
	if log, err := os.Stat(d.logPath); err == nil {
		d.logSizeBefore = log.Size()
	}
	if links(info) > 1 {
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
	// with Create the caller wants to write, so report a read-only file now: SQLite would fail only at the first write
	if d.options.Create {
		if err := writable(d.path); err != nil {
			return readOnly(err, d.path)
		}
	}
	return nil
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

// dangling returns the error of a symlink to a file that does not exist.
func dangling(path, to string) error {
	if !filepath.IsAbs(to) {
		to = filepath.Join(filepath.Dir(path), to)
	}
	return &jobs.Error{Kind: jobs.ErrNoDatabase, Code: errcode.DanglingSymlink, Subject: to,
		What: path + " is a symlink to " + to + ", which does not exist", Hint: to}
}
