package sqlite

import (
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

// vacuumInto writes a consistent copy of the database to the empty file [1]. The copy holds everything that was committed before the
// statement began, and nothing that is committed later. Writers continue during the copy, but SQLite cannot restart the write-ahead
// log until the copy is done.
const vacuumInto = `VACUUM INTO ?`

// copyMode sets the copy to WAL mode, because VACUUM INTO does not copy the journal mode. So a user who restores the copy need not set the
// mode.
const copyMode = `PRAGMA journal_mode = WAL`

// Backup implements engine.Shared.
func (d *File) Backup(ctx context.Context, to string, replace bool) (int64, error) {
	if err := NotPath(to); err != nil {
		return 0, err
	}
	to, err := Resolve(to)
	if err != nil {
		return 0, err
	}
	if err := d.mayBackup(to, replace); err != nil {
		return 0, err
	}
	// in the directory of the backup, so that a rename works
	part := newPart(filepath.Dir(to), "."+filepath.Base(to)+".")
	defer os.Remove(part)
	n, err := d.copyTo(ctx, part, to)
	if err != nil {
		return 0, err
	}
	if err := place(part, to, replace); errors.Is(err, jobs.ErrConflict) {
		return 0, err
	} else if err != nil {
		return 0, backupProblem(err, to)
	}
	return n, syncDir(filepath.Dir(to))
}

// BackupFile implements engine.Shared.
func (d *File) BackupFile(ctx context.Context) (string, error) {
	if err := d.MakeDir(); err != nil {
		return "", err
	}
	part := newPart(d.Dir(), "backup-")
	if _, err := d.copyTo(ctx, part, part); err != nil {
		os.Remove(part)
		return "", err
	}
	return part, nil
}

// mayBackup returns an error if Backup must not write a file at the path in the parameter "to". The caller has resolved the symlinks in
// this path.
func (d *File) mayBackup(to string, replace bool) error {
	info, err := os.Lstat(to)
	switch {
	case err == nil && info.IsDir():
		return &jobs.Error{Kind: jobs.ErrConflict, Code: errcode.BackupDirectory, Subject: to,
			What: to + " is a directory", Hint: "the path of a file in it"}
	case err == nil && !info.Mode().IsRegular():
		return notRegular(to)
	case err == nil && identify(info) == d.id && d.id != fileID{} || to == d.path || to == d.logPath || to == d.sharedPath:
		return &jobs.Error{Kind: jobs.ErrConflict, What: to + " is the database itself"}
	case err == nil && !replace:
		return &jobs.Error{Kind: jobs.ErrConflict, Code: errcode.BackupExists, Subject: to, What: to + " exists", Hint: "another name"}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return backupProblem(err, to)
	}
	for _, end := range []string{"-wal", "-shm", "-journal"} {
		if _, err := os.Lstat(to + end); err == nil { // SQLite would use an existing file of this name as the log of the copy
			return &jobs.Error{Kind: jobs.ErrConflict, What: to + end + " exists",
				Why:  []string{"a database of that name is in use, or was left by a crash: its log would ruin the copy"},
				Hint: "another name"}
		}
	}
	return nil
}

// copyTo writes a copy of the database to a new file and syncs it. The parameter "part" is the path of the new file. The file has mode 0600
// from its creation. The parameter "to" is the final path of the backup. Errors name this path, because the user knows it.
func (d *File) copyTo(ctx context.Context, part, to string) (int64, error) {
	file, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return 0, backupProblem(err, to)
	}
	if err := file.Close(); err != nil { // close now: closing the file after SQLite has opened it would drop SQLite's locks
		return 0, err
	}
	// Use a separate connection, because the connections of the read pool cannot write, and because a copy can take seconds and must not
	// block the writer.
	from, err := Connect(d.path, "rw", "busy_timeout(5000)")
	if err != nil {
		return 0, err
	}
	defer from.Close()
	if _, err := from.ExecContext(ctx, vacuumInto, part); err != nil {
		return 0, explain(err, to)
	}
	return sealCopy(ctx, part, to)
}

// sealCopy makes a copy ready to be opened as a database, syncs it, and returns
// its size. Errors name the path "to".
func sealCopy(ctx context.Context, part, to string) (int64, error) {
	copied, err := Connect(part, "rw")
	if err != nil {
		return 0, err
	}
	_, err = copied.ExecContext(ctx, copyMode)
	if err := errors.Join(err, copied.Close()); err != nil { // when the last connection closes, SQLite removes -wal and -shm
		return 0, explain(err, to)
	}
	file, err := os.OpenFile(part, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	if err := file.Sync(); err != nil {
		return 0, backupProblem(err, to)
	}
	info, err := file.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

// minPartAge is the age from which a partial copy counts as left by a killed
// backup: SQLite writes to it all the time.
const minPartAge = time.Hour

// newPart returns the path of a new partial copy, and removes those that killed
// backups have left. The name is random, so that no other user can plant a file
// or a link there.
func newPart(dir, prefix string) string {
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		random, isPart := strings.CutSuffix(strings.TrimPrefix(entry.Name(), prefix), ".part")
		info, err := entry.Info()
		if !isPart || len(random) != 8 || !strings.HasPrefix(entry.Name(), prefix) || err != nil || !info.Mode().IsRegular() ||
			time.Since(info.ModTime()) < minPartAge {
			continue
		}
		part := filepath.Join(dir, entry.Name())
		for _, end := range []string{"", "-journal", "-wal", "-shm"} {
			_ = os.Remove(part + end)
		}
	}
	return filepath.Join(dir, prefix+rand.Text()[:8]+".part")
}

// notRegular returns the error of a backup that would replace a device, a FIFO, a socket or a dangling symlink.
func notRegular(path string) error {
	return &jobs.Error{Kind: jobs.ErrConflict, What: path + " is not a regular file", Hint: "another name"}
}

// place renames a finished copy to its final name. It replaces only regular files. If replace is false, it replaces no file, not even a
// file that was created a moment ago.
func place(part, to string, replace bool) error {
	if replace {
		if info, err := os.Lstat(to); err == nil && !info.Mode().IsRegular() {
			return notRegular(to)
		}
		return os.Rename(part, to)
	}
	err := os.Link(part, to)
	switch {
	case err == nil:
		return os.Remove(part) // the copy now has two names (hard links), and Open rejects such a file; so remove one name
	case errors.Is(err, fs.ErrExist):
		return err
	}
	if _, err := os.Lstat(to); err == nil { // the link has failed because this filesystem has no hard links
		return fs.ErrExist
	}
	return os.Rename(part, to)
}

func backupProblem(err error, path string) error {
	p := &jobs.Error{Kind: jobs.ErrPermission, What: "cannot write " + path, Err: err}
	switch {
	case errors.Is(err, fs.ErrExist):
		p.Kind, p.Code, p.Subject, p.What, p.Hint = jobs.ErrConflict, errcode.BackupExists, path, path+" exists", "another name"
	case errors.Is(err, fs.ErrNotExist):
		p.Why, p.Hint = []string{"no directory " + filepath.Dir(path)}, "mkdir -p "+filepath.Dir(path)
	case errors.Is(err, fs.ErrPermission):
		p.Why = []string{"permission denied"}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return engine.FileError(err, path)
	default:
		p.Why = []string{err.Error()}
	}
	return p
}
