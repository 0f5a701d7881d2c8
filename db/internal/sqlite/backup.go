package sqlite

import (
	"context"
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// vacuumInto writes a consistent copy of the database into the empty file [1]: everything that was committed before it began, nothing
// that is committed later. Writers go on meanwhile; the log cannot start afresh until it is done.
const vacuumInto = `VACUUM INTO ?`

// copyMode gives a copy the mode of the original: VACUUM INTO leaves it out of WAL, and nobody would set it when the copy is restored.
const copyMode = `PRAGMA journal_mode = WAL`

// Backup writes a copy of the database to the file to, which appears complete or not at all, mode 0600 and on the disk. A file that
// is there is an error of kind ErrConflict unless replace, and one that is a database in use always. It returns the bytes of the copy.
func (d *File) Backup(ctx context.Context, to string, replace bool) (int64, error) {
	to, err := Resolve(to)
	if err != nil {
		return 0, err
	}
	if err := d.mayBackup(to, replace); err != nil {
		return 0, err
	}
	// Beside its place, so that it can be renamed. The name is nobody's: nothing that was planted is followed or written.
	part := filepath.Join(filepath.Dir(to), "."+filepath.Base(to)+"."+rand.Text()[:8]+".part")
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

// BackupFile writes a copy of the database into a new file of the directory beside it, for whoever hands it on, and returns its path.
func (d *File) BackupFile(ctx context.Context) (string, error) {
	if err := os.Mkdir(d.Dir(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", backupProblem(err, d.Dir())
	}
	part := filepath.Join(d.Dir(), "backup-"+rand.Text()[:8]+".part")
	if _, err := d.copyTo(ctx, part, part); err != nil {
		os.Remove(part)
		return "", err
	}
	return part, nil
}

// mayBackup returns why a copy cannot be the file to, which is behind every symlink that leads somewhere.
func (d *File) mayBackup(to string, replace bool) error {
	info, err := os.Lstat(to)
	switch {
	case err == nil && info.IsDir():
		return &jobs.Error{Kind: jobs.ErrConflict, Code: errcode.BackupDirectory, Subject: to,
			What: to + " is a directory", Hint: "the path of a file in it"}
	case err == nil && !info.Mode().IsRegular():
		return notRegular(to)
	case err == nil && identify(info) == d.id && d.id != fileID{} || to == d.path || to == d.path+"-wal" || to == d.path+"-shm":
		return &jobs.Error{Kind: jobs.ErrConflict, What: to + " is the database itself"}
	case err == nil && !replace:
		return &jobs.Error{Kind: jobs.ErrConflict, Code: errcode.BackupExists, Subject: to, What: to + " exists", Hint: "another name"}
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return backupProblem(err, to)
	}
	for _, end := range []string{"-wal", "-shm", "-journal"} {
		if _, err := os.Lstat(to + end); err == nil { // SQLite would take it for the copy's own
			return &jobs.Error{Kind: jobs.ErrConflict, What: to + end + " exists",
				Why:  []string{"a database of that name is in use, or was left by a crash: its log would ruin the copy"},
				Hint: "another name"}
		}
	}
	return nil
}

// copyTo writes a copy to a new file, 0600 from its first moment, and syncs it. Errors speak of the file to, that people know.
func (d *File) copyTo(ctx context.Context, part, to string) (int64, error) {
	file, err := os.OpenFile(part, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return 0, backupProblem(err, to)
	}
	if err := file.Close(); err != nil { // before SQLite opens it: closing it later would drop locks
		return 0, err
	}
	// A connection of its own: those for reading may write nothing, and a copy of many seconds must not hold up the writer.
	from, err := Connect(d.path, "rw", "busy_timeout(5000)")
	if err != nil {
		return 0, err
	}
	defer from.Close()
	if _, err := from.ExecContext(ctx, vacuumInto, part); err != nil {
		return 0, explain(err, to)
	}
	copied, err := Connect(part, "rw")
	if err != nil {
		return 0, err
	}
	_, err = copied.ExecContext(ctx, copyMode)
	if err := errors.Join(err, copied.Close()); err != nil { // the last connection takes -wal and -shm away
		return 0, explain(err, to)
	}
	if file, err = os.OpenFile(part, os.O_RDWR, 0); err != nil {
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

// notRegular is the problem of a backup that would take the place of a device, a FIFO, a socket or a symlink that leads nowhere.
func notRegular(path string) error {
	return &jobs.Error{Kind: jobs.ErrConflict, What: path + " is not a regular file", Hint: "another name"}
}

// place gives a finished copy its name. It replaces a regular file only, and without replace none, not even one that has just come.
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
		return os.Remove(part) // a database with two names is refused
	case errors.Is(err, fs.ErrExist):
		return err
	}
	if _, err := os.Lstat(to); err == nil { // a filesystem without links
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
	default:
		p.Why = []string{err.Error()}
	}
	return p
}
