package sqlite

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"example.com/runner/db/internal/engine"
	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// vacuumInto writes a consistent copy of the database to the empty file [1].
// The copy holds everything that was committed before the statement began, and
// nothing that's committed later. Writers go on during the copy, but SQLite
// can't restart the WAL until it's done.
const vacuumInto = `VACUUM INTO ?`

// copyMode sets the copy to WAL mode, which VACUUM INTO doesn't copy.
const copyMode = `PRAGMA journal_mode = WAL`

// emptyLog moves all pages of the log into the file. It outputs whether another
// connection prevented that, and two numbers of pages.
const emptyLog = `PRAGMA wal_checkpoint(TRUNCATE)`

// Backup implements engine.Shared.
func (d *File) Backup(ctx context.Context, to string, replace bool) (int64, error) {
	to, err := Resolve(to)
	if err != nil {
		return 0, err
	}
	if err := d.mayBackup(to, replace); err != nil {
		return 0, writeError(err, to)
	}

	fill := func(part string) (int64, error) { return d.copyTo(ctx, part, to) }
	return newFile(to, fill, func(part string) error { return place(part, to, replace) })
}

// newFile fills a file beside path (so that a rename works), puts it in its
// place, and returns its size. A crash leaves all of it there, or nothing.
func newFile(path string, fill func(part string) (int64, error), place func(part string) error) (int64, error) {
	dir := filepath.Dir(path)
	part := newPart(dir, "."+filepath.Base(path)+".")
	defer removeCopy(part)

	size, err := fill(part)
	if err == nil {
		err = place(part)
	}
	if err == nil {
		err = syncDir(dir)
	}
	if err != nil {
		return 0, writeError(err, path)
	}

	return size, nil
}

// BackupFile implements engine.Shared.
func (d *File) BackupFile(ctx context.Context) (string, error) {
	if err := d.MakeDir(); err != nil {
		return "", err
	}

	part := newPart(d.Dir(), "backup-")
	if _, err := d.copyTo(ctx, part, part); err != nil {
		removeCopy(part)
		return "", writeError(err, part)
	}

	return part, nil
}

// mayBackup returns an error if Backup must not write a file at the path to, in
// which symlinks are resolved.
func (d *File) mayBackup(to string, replace bool) error {
	info, err := os.Lstat(to)
	switch {
	case err == nil && info.IsDir():
		return &jobs.Error{Kind: jobs.ErrConflict, Code: errcode.BackupDirectory, Subject: to,
			What: to + " is a directory", Hint: "the path of a file in it"}
	case err == nil && identify(info) == d.id && d.id != fileID{} || to == d.path || to == d.logPath || to == d.sharedPath:
		return &jobs.Error{Kind: jobs.ErrConflict, What: to + " is the database itself"}
	}

	if err := mayReplace(to, replace); err != nil {
		return err
	}

	for _, end := range besideEnds {
		if _, err := os.Lstat(to + end); err == nil { // SQLite would use it as the log of the copy
			return &jobs.Error{Kind: jobs.ErrConflict, What: to + end + " exists",
				Why:  []string{"a database of that name is in use, or was left by a crash: its log would ruin the copy"},
				Hint: "another name"}
		}
	}

	return nil
}

// copyTo writes a copy of the database to the new file part, with mode 0600
// from the beginning, and syncs it. Errors name the path to, which the user
// knows.
func (d *File) copyTo(ctx context.Context, part, to string) (int64, error) {
	file, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return 0, err
	}

	file.Close() // now: closing it after SQLite has opened it would drop SQLite's locks
	// A connection of its own: those of the read pool can't write, and a copy
	// can take seconds and must not block the writer.
	from, err := Connect(d.path, "rw", "busy_timeout(5000)", pageCache)
	if err != nil {
		return 0, err
	}
	defer from.Close()

	if _, err := from.ExecContext(ctx, vacuumInto, part); err != nil {
		return 0, explain(err, to)
	}

	return sealCopy(ctx, part, to)
}

// sealCopy makes a copy ready to be opened as a database without its log, syncs
// it, and returns its size.
func sealCopy(ctx context.Context, part, to string) (int64, error) {
	copied, err := Connect(part, "rw")
	if err != nil {
		return 0, err
	}

	var busy bool
	var pages, moved int
	if _, err = copied.ExecContext(ctx, copyMode); err == nil {
		// not left to the close, which reports no error of the move
		err = copied.QueryRowxContext(ctx, emptyLog).Scan(&busy, &pages, &moved)
	}
	if err := errors.Join(err, copied.Close()); err != nil { // when the last connection closes, SQLite removes -wal and -shm
		return 0, explain(err, to)
	}
	if log, err := os.Stat(part + "-wal"); busy || err == nil && log.Size() > 0 {
		return 0, &jobs.Error{Kind: jobs.ErrBusy, What: "another program uses the unfinished copy " + part, Hint: "again"}
	}

	file, err := os.OpenFile(part, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer file.Close()

	info, err := file.Stat()
	if err != nil {
		return 0, err
	}

	return info.Size(), file.Sync()
}

// minPartAge is the age from which a partial copy counts as left by a killed
// backup: SQLite writes to it all the time.
const minPartAge = time.Hour

// newPart returns the path of a new partial copy, and removes those that killed
// backups have left. The name is random, so that no other user can plant a file
// or a link there.
func newPart(dir, prefix string) string {
	const random, end = 8, ".part"
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		name := entry.Name()
		info, err := entry.Info()
		if err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > minPartAge &&
			len(name) == len(prefix)+random+len(end) && strings.HasPrefix(name, prefix) && strings.HasSuffix(name, end) {
			removeCopy(filepath.Join(dir, name))
		}
	}

	return filepath.Join(dir, prefix+rand.Text()[:random]+end)
}

// removeCopy removes a partial copy with the files and the directory beside it.
// The copy goes last: only by its name does a later newPart find the others.
func removeCopy(part string) {
	err := os.RemoveAll(part + ".d")
	for _, end := range besideEnds {
		err = cmp.Or(err, ignoreMissing(os.Remove(part+end)))
	}
	if err == nil {
		_ = os.Remove(part)
	}
}

// mayReplace returns an error if a copy must not take the name to. It never
// replaces a device, a FIFO, a socket or a dangling symlink.
func mayReplace(to string, replace bool) error {
	info, err := os.Lstat(to)
	switch {
	case err != nil:
		return ignoreMissing(err)
	case !info.Mode().IsRegular():
		return &jobs.Error{Kind: jobs.ErrConflict, What: to + " is not a regular file", Hint: "another name"}
	case !replace:
		return fs.ErrExist
	}

	return nil
}

// place renames a finished copy to its final name. It replaces no file that has
// just appeared, unless replace is set.
func place(part, to string, replace bool) error {
	if err := mayReplace(to, replace); err != nil {
		return err
	}
	if !replace {
		switch err := os.Link(part, to); {
		case err == nil:
			return os.Remove(part) // Open rejects a file with two names
		case errors.Is(err, fs.ErrExist):
			return err
		}
	}

	return os.Rename(part, to) // also on a filesystem without hard links
}

// writeError explains an error of the system about the file at path.
func writeError(err error, path string) error {
	_, explained := errors.AsType[*jobs.Error](err)
	_, ofSystem := errors.AsType[syscall.Errno](err)
	switch {
	case explained:
		return err
	case errors.Is(err, fs.ErrExist):
		return &jobs.Error{Kind: jobs.ErrConflict, Code: errcode.BackupExists, Subject: path, What: path + " exists", Hint: "another name",
			Err: err}
	case ofSystem:
		return engine.FileError(err, path)
	}

	return err
}
