package sqlite

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/owner"
	"example.com/runner/jobs"
)

// # Problem
//
// A restored file must never meet the WAL of the file that it replaces: SQLite
// would write the WAL's pages into it, and the result is neither database. No
// system call replaces a file and removes its WAL at once, and a crash may come
// between any two calls.
//
// # Steps
//
//  1. Let SQLite copy the old WAL into the old file and remove it, and keep
//     other connections out from then on.
//  2. Copy the backup to a new file beside the database, check it, sync it.
//  3. Give the old file a second name (a hard link), and rename the copy to the
//     first name.
//
// Killed in step 3, the old file has two names. Open refuses such a file, and
// another restore takes the step back and begins anew. SQLite can't do step 1
// in a damaged file; its WAL then gets the second name, too.

// Restored is the result of Restore.
type Restored struct {
	Path  string // absolute path of the database, with symlinks resolved
	Bytes int64  // size of the database
	Kept  string // path of the database that was there before; empty if there was none
}

// keptMark follows the name of a database in the name of the file that it
// replaced.
const keptMark = ".before-restore-"

// besideEnds end the names of the files that SQLite makes beside a database.
// Those of logEnds hold writes that aren't in the database file yet.
var (
	besideEnds = []string{"-wal", "-journal", "-shm"}
	logEnds    = besideEnds[:2]
)

// Restore puts a copy of the backup at from in the place of the database at
// path, which needn't exist. A database that is there keeps its content under
// another name.
func Restore(ctx context.Context, path, from string, o engine.Options, now time.Time) (Restored, error) {
	d, err := New(path, o)
	if err != nil {
		return Restored{}, err
	}

	restored, err := d.restore(ctx, from, now)
	return restored, writeError(err, d.path)
}

func (d *File) restore(ctx context.Context, from string, now time.Time) (Restored, error) {
	if err := cmp.Or(d.checkFilesystem(), d.checkBackup(from)); err != nil {
		return Restored{}, err
	}

	defer d.lockOpening()()

	old, err := d.oldFile()
	if err != nil {
		return Restored{}, err
	}
	if err := d.takeBack(old); err != nil {
		return Restored{}, err
	}

	release, err := d.takeOver(old)
	if err != nil {
		return Restored{}, err
	}
	defer release()

	result := Restored{Path: d.path}
	toPlace := func(part string) error { return place(part, d.path, false) }
	if old != nil {
		result.Kept = d.path + keptMark + now.Format("2006-01-02T15-04-05.000")
		toPlace = func(part string) error { return d.replace(part, result.Kept) }
	}

	fill := func(part string) (int64, error) {
		size, err := d.prepare(ctx, part, from, old)
		if ctx.Err() != nil {
			return 0, context.Cause(ctx)
		}
		return size, err
	}
	if result.Bytes, err = newFile(d.path, fill, toPlace); err != nil {
		return Restored{}, err
	}

	return result, nil
}

// checkBackup returns an error if from can't be a backup.
func (d *File) checkBackup(from string) error {
	info, err := os.Stat(from)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &jobs.Error{Kind: jobs.ErrNoDatabase, What: "no file " + from, Err: err, Hint: "the path of a backup"}
	case err != nil:
		return engine.FileError(err, from)
	case !info.Mode().IsRegular():
		return &jobs.Error{Kind: jobs.ErrSchema, What: from + " is not a regular file", Hint: "the path of a backup"}
	}

	if old, err := os.Stat(d.path); err == nil && os.SameFile(old, info) {
		return &jobs.Error{Kind: jobs.ErrConflict, What: from + " is the database itself", Hint: "the path of a backup"}
	}
	if usedBy(from).file { // the name of a file, also if it looks like an address
		return &jobs.Error{Kind: jobs.ErrConflict, What: from + " is a database in use",
			Why:  []string{"a copy could lack its last writes; nothing was changed"},
			Hint: "make a backup of it, and restore that"}
	}

	return nil
}

// oldFile returns the file at the path of the database, or nil if there is
// none.
func (d *File) oldFile() (fs.FileInfo, error) {
	info, err := os.Lstat(d.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, checkLeftLog(d.path)
	case err != nil:
		return nil, engine.FileError(err, d.path)
	case !info.Mode().IsRegular():
		return nil, &jobs.Error{Kind: jobs.ErrConflict, What: d.path + " is not a regular file", Hint: "move it away, then again"}
	}

	return info, d.checkBeside()
}

// takeOver makes step 1. SQLite would remove the WAL of an empty file, so such
// a file keeps it.
func (d *File) takeOver(old fs.FileInfo) (release func(), err error) {
	release, ok := keepOut(d.path)
	if ok && old != nil && old.Size() > 0 {
		release()
		if pool, err := Connect(d.path, "rw"); err == nil {
			_, _ = pool.Exec(emptyLog) // fails if the file is damaged
			pool.Close()
		}
		release, ok = keepOut(d.path)
	}
	if ok {
		return release, nil
	}

	e := &jobs.Error{Kind: jobs.ErrConflict, What: "database is in use: " + d.path,
		Hint: "stop the workers and every other program that uses it, then again"}
	for _, p := range d.users() {
		e.Why = append(e.Why, "process "+strconv.Itoa(p.PID)+" ("+p.Name+") has it open")
	}

	e.Why = append(e.Why, "nothing was changed")
	return nil, e
}

// prepare makes the file that will be the database.
func (d *File) prepare(ctx context.Context, part, from string, old fs.FileInfo) (int64, error) {
	if err := copyFile(ctx, part, from); err != nil {
		return 0, err
	}

	for _, end := range logEnds {
		if err := ignoreMissing(copyFile(ctx, part+end, from+end)); err != nil {
			return 0, err
		}
	}

	if err := d.checkCopy(ctx, part); err != nil {
		return 0, d.aboutCopy(err, part, from)
	}
	if old != nil {
		if err := sameRights(part, old); err != nil {
			return 0, err
		}
	}

	return sealCopy(ctx, part, d.path)
}

// aboutCopy returns an error of the copy part as one of a file that the user
// knows: of the backup, or, without room or rights, of the database beside it.
func (d *File) aboutCopy(err error, part, from string) error {
	e, ok := errors.AsType[*jobs.Error](err)
	if !ok {
		return err
	}

	named, name := *e, from
	if errors.Is(e.Kind, jobs.ErrCorrupt) || errors.Is(e.Kind, jobs.ErrReplaced) {
		named.Hint = "an older backup"
	} else if errors.Is(e.Kind, jobs.ErrFull) || errors.Is(e.Kind, jobs.ErrPermission) {
		name = d.path
	}

	named.What, named.Code = strings.ReplaceAll(e.What, part, name), "" // advice by code is about --db
	return &named
}

func copyFile(ctx context.Context, to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return engine.FileError(err, from) // the caller explains errors of the other file
	}
	defer in.Close()
	defer context.AfterFunc(ctx, func() { in.Close() })() // ends the copy

	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}

	_, err = io.Copy(out, in)
	err = errors.Join(err, out.Close())
	if errors.Is(err, syscall.EIO) { // the kernel copies, and doesn't say which disk failed
		return &jobs.Error{Kind: jobs.ErrCorrupt, What: "cannot copy " + from + " to " + filepath.Dir(to),
			Why: []string{err.Error()}, Hint: "check the disk", Err: err}
	}

	return err
}

// checkCopy opens the copy, which upgrades it, and returns an error unless it
// is an undamaged database of runner.
func (d *File) checkCopy(ctx context.Context, part string) error {
	// alone: the worker that ran at the time of the backup doesn't use the copy
	c, err := New(part, engine.Options{BusyTimeout: d.options.BusyTimeout, UnsafeFS: d.options.UnsafeFS, Alone: true})
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(c.Close(), os.RemoveAll(c.Dir())) }()

	conn, err := c.Open(ctx)
	if err != nil {
		return err
	}

	found, err := c.Integrity(ctx, false)
	_ = conn.Close()
	return cmp.Or(err, engine.Damaged(part, found))
}

// sameRights gives the copy the owner and the mode of the old file, so that the
// users of the database, such as the worker's, can still open it.
func sameRights(part string, old fs.FileInfo) error {
	if uid, gid, ok := owner.Of(old); ok {
		if err := os.Chown(part, uid, gid); err != nil {
			return err
		}
	}
	return os.Chmod(part, old.Mode().Perm())
}

// replace makes step 3. If it fails, the old database is back in place.
func (d *File) replace(part, kept string) error {
	if err := os.Link(d.path, kept); err != nil {
		return &jobs.Error{Kind: jobs.ErrPermission, What: "cannot keep the database under the name " + kept, Err: err,
			Why:  []string{err.Error(), "nothing was changed"},
			Hint: "move " + d.path + " and the files whose names begin with it away, then again"}
	}

	err := ignoreMissing(os.Remove(d.sharedPath))
	if err == nil {
		err = moveLogs(d.path, kept)
	}
	if err == nil {
		err = syncDir(filepath.Dir(d.path)) // so that no power failure keeps the rename alone
	}
	if err == nil {
		err = os.Rename(part, d.path)
	}
	if err != nil {
		_ = moveLogs(kept, d.path)
		_ = os.Remove(kept)
	}

	return err
}

// moveLogs gives the logs of one name of a database to another.
func moveLogs(from, to string) (err error) {
	for _, end := range logEnds {
		err = cmp.Or(err, ignoreMissing(os.Rename(from+end, to+end)))
	}
	return err
}

// takeBack undoes step 3 if a restore was killed in it: the old file gets its
// WAL back, and then loses its second name. Until then Open refuses it.
func (d *File) takeBack(old fs.FileInfo) error {
	dir, base := filepath.Split(d.path)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}

	for _, entry := range entries {
		kept := dir + entry.Name()
		info, err := os.Lstat(kept)
		if !strings.HasPrefix(entry.Name(), base+keptMark) || err != nil || !os.SameFile(info, old) {
			continue
		}
		if err := moveLogs(kept, d.path); err != nil {
			return err
		}
		if err := syncDir(dir); err != nil {
			return err
		}
		if err := os.Remove(kept); err != nil {
			return err
		}
	}

	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
