package sqlite

import (
	"cmp"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/owner"
	"example.com/runner/db/schema"
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
//  1. Copy the backup to a new file beside the database, check it, sync it.
//  2. Give the old file a second name (a hard link). Open refuses a file that
//     has two names, so from here on nobody uses the old file without its WAL.
//  3. Move the WAL to the second name.
//  4. Rename the copy to the first name. Now each file has one name, and the
//     old one still has its WAL.
//
// Killed in step 2 or 3, Open says that a restore was interrupted, and the next
// restore first undoes these steps. A lock keeps other connections out meanwhile.

// Restored is the result of Restore.
type Restored struct {
	Path  string // absolute path of the database, with symlinks resolved
	Bytes int64  // size of the database
	Kept  string // path of the database that was there before; empty if there was none
}

// keptMark follows the name of a database in the name of the file that it
// replaced.
const keptMark = ".before-restore-"

// besideEnds end the names of the files in which SQLite keeps writes that aren't
// in the database file yet.
var besideEnds = []string{"-wal", "-journal"}

// Restore puts a copy of the backup at from in the place of the database at
// path, which need not exist. A database that is there keeps its content under
// another name.
func Restore(ctx context.Context, path, from string, o engine.Options, now time.Time) (Restored, error) {
	d, err := New(path, o)
	if err != nil {
		return Restored{}, err
	}
	backup, err := d.checkBackup(from)
	if err != nil {
		return Restored{}, err
	}
	defer d.lockOpening()()
	release, ok := keepOut(d.path)
	if !ok {
		return Restored{}, d.isInUse()
	}
	defer release()

	old, err := d.oldFile()
	if err != nil {
		return Restored{}, err
	}
	if old != nil && os.SameFile(old, backup) {
		if d.secondName(old) == "" {
			return Restored{}, &jobs.Error{Kind: jobs.ErrConflict, What: from + " is the database itself"}
		}
		return Restored{Path: d.path, Bytes: old.Size()}, d.undoSetAside()
	}
	if old != nil {
		if err := d.undoSetAside(); err != nil {
			return Restored{}, err
		}
	}

	part := newPart(filepath.Dir(d.path), "."+filepath.Base(d.path)+".")
	defer func() {
		for _, end := range append([]string{"", "-shm"}, besideEnds...) {
			_ = os.Remove(part + end)
		}
	}()
	result := Restored{Path: d.path}
	if result.Bytes, err = d.prepare(ctx, part, from, old); ctx.Err() != nil {
		return Restored{}, context.Cause(ctx)
	} else if err != nil {
		return Restored{}, err
	}
	if old == nil {
		if err := place(part, d.path, false); err != nil {
			return Restored{}, backupProblem(err, d.path)
		}
		return result, syncDir(filepath.Dir(d.path))
	}
	if result.Kept, err = d.replace(part, now); err != nil {
		return Restored{}, err
	}
	return result, nil
}

// checkBackup returns an error if from can't be a backup.
func (d *File) checkBackup(from string) (fs.FileInfo, error) {
	info, err := os.Stat(from)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &jobs.Error{Kind: jobs.ErrNoDatabase, What: "no file " + from, Err: err, Hint: "the path of a backup"}
	case err != nil:
		return nil, engine.FileError(err, from)
	case !info.Mode().IsRegular():
		return nil, &jobs.Error{Kind: jobs.ErrSchema, What: from + " is not a regular file",
			Hint: "the path of a backup"}
	}
	if real, err := Resolve(from); err == nil && real != d.path && usedBy(real).file {
		return nil, &jobs.Error{Kind: jobs.ErrConflict, What: from + " is a database in use",
			Why:  []string{"a copy could lack its last writes; nothing was changed"},
			Hint: "make a backup of it, and restore that"}
	}
	return info, nil
}

// oldFile returns the file at the path of the database, or nil if there is none.
func (d *File) oldFile() (fs.FileInfo, error) {
	info, err := os.Lstat(d.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, d.checkLeftLog()
	case err != nil:
		return nil, engine.FileError(err, d.path)
	case !info.Mode().IsRegular():
		return nil, &jobs.Error{Kind: jobs.ErrConflict, What: d.path + " is not a regular file", Hint: "move it away, then again"}
	case links(info) > 1 && d.secondName(info) == "":
		return nil, d.hardLinked(info)
	}
	return info, d.checkBeside()
}

func (d *File) isInUse() error {
	e := &jobs.Error{Kind: jobs.ErrConflict, What: "database is in use: " + d.path,
		Hint: "stop the workers and every other program that uses it, then again"}
	for _, p := range users(d.sharedPath) {
		e.Why = append(e.Why, "process "+strconv.Itoa(p.PID)+" ("+p.Name+") has it open")
	}
	e.Why = append(e.Why, "nothing was changed")
	return e
}

// prepare makes the file that will be the database. Errors name the backup,
// which the user knows.
func (d *File) prepare(ctx context.Context, part, from string, old fs.FileInfo) (int64, error) {
	for _, end := range append([]string{""}, besideEnds...) {
		err := copyFile(ctx, part+end, from+end)
		if err != nil && (end == "" || !errors.Is(err, fs.ErrNotExist)) {
			return 0, backupProblem(err, d.path)
		}
	}
	if err := d.checkCopy(ctx, part); err != nil {
		return 0, d.explainCopy(err, part, from)
	}
	if old != nil {
		if err := sameRights(part, old); err != nil {
			uid, _, _ := owner.Of(old)
			return 0, &jobs.Error{Kind: jobs.ErrPermission, What: "cannot write " + d.path, Err: err,
				Why: []string{"only root and its owner can replace it"}, Hint: "again as " + owner.UserName(uid)}
		}
	}
	n, err := sealCopy(ctx, part, d.path)
	if _, left := os.Lstat(part + "-wal"); err == nil && left == nil {
		err = &jobs.Error{Kind: jobs.ErrBusy, What: "another process has opened the copy " + part, Hint: "again"}
	}
	return n, err
}

func copyFile(ctx context.Context, to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	defer context.AfterFunc(ctx, func() { in.Close() })() // ends the copy
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// checkCopy returns an error unless the file is an undamaged database of runner.
// An older schema is fine, because the next open upgrades it.
func (d *File) checkCopy(ctx context.Context, part string) error {
	c, err := New(part, engine.Options{BusyTimeout: d.options.BusyTimeout, UnsafeFS: d.options.UnsafeFS})
	if err != nil {
		return err
	}
	if err := c.find(); err != nil {
		return err
	}
	have, prefix, err := c.connectWriter(ctx)
	defer func() {
		if c.conn != nil {
			c.conn.Close()
		}
		if c.write != nil {
			c.write.Close()
		}
	}()
	if err != nil {
		return err
	}
	var found []string
	if err := c.conn.SelectContext(ctx, &found, quickCheck); err != nil {
		return c.Explain(err)
	}
	c.sql = Dialect(prefix)
	switch {
	case !slices.Equal(found, []string{"ok"}):
		return &jobs.Error{Kind: jobs.ErrCorrupt, What: "database is damaged: " + part,
			Why: []string{strings.Join(found[:min(len(found), 3)], "; "), "nothing was changed"}}
	case have == 0:
		return &jobs.Error{Kind: jobs.ErrSchema, What: part + " is not a runner database",
			Why: []string{"it has no tables of runner; nothing was changed"}, Hint: "another file"}
	case have == schema.Version(schema.SQLite):
		return c.checkColumns(ctx)
	}
	return nil
}

// explainCopy puts a name that the user typed into an error about the copy: that
// of the backup, or that of the database if only its place is wrong.
func (d *File) explainCopy(err error, part, from string) error {
	e, ok := errors.AsType[*jobs.Error](err)
	if !ok {
		return err
	}
	named, name := *e, d.path
	if errors.Is(e.Kind, jobs.ErrSchema) || errors.Is(e.Kind, jobs.ErrCorrupt) {
		name, named.Code = from, "" // advice by code is about --db
	}
	if errors.Is(e.Kind, jobs.ErrCorrupt) {
		named.Hint = "an older backup"
	}
	named.What, named.Subject = strings.ReplaceAll(e.What, part, name), strings.ReplaceAll(e.Subject, part, name)
	return &named
}

// sameRights gives the copy the owner and the mode of the old file, so that the
// users of the database, such as the worker's, can still open it.
func sameRights(part string, old fs.FileInfo) error {
	info, err := os.Stat(part)
	if err != nil {
		return err
	}
	uid, gid, ok := owner.Of(old)
	if ownUID, ownGID, _ := owner.Of(info); ok && (uid != ownUID || gid != ownGID) {
		if err := os.Chown(part, uid, gid); err != nil {
			return err
		}
	}
	return os.Chmod(part, old.Mode().Perm())
}

// replace makes steps 2 to 4. If one fails, the old database is back in place.
func (d *File) replace(part string, now time.Time) (kept string, err error) {
	if kept, err = d.link(d.path + keptMark + now.Format("2006-01-02T15-04-05")); err != nil {
		return "", err
	}
	dir := filepath.Dir(d.path)
	for _, end := range besideEnds {
		err = cmp.Or(err, ignoreMissing(os.Rename(d.path+end, kept+end)))
	}
	err = cmp.Or(err, ignoreMissing(os.Remove(d.sharedPath)))
	if err == nil {
		err = syncDir(dir) // so that no power failure keeps step 4 alone
	}
	if err == nil {
		err = os.Rename(part, d.path)
	}
	if err != nil {
		return "", cmp.Or(d.undoSetAside(), backupProblem(err, d.path))
	}
	return kept, syncDir(dir)
}

// link gives the old file a second name.
func (d *File) link(kept string) (string, error) {
	name := kept
	for n := 2; ; n++ {
		err := os.Link(d.path, name)
		switch {
		case err == nil:
			return name, nil
		case !errors.Is(err, fs.ErrExist):
			return "", &jobs.Error{Kind: jobs.ErrPermission, What: "cannot keep the database under the name " + name, Err: err,
				Why:  []string{err.Error(), "nothing was changed"},
				Hint: "move " + d.path + " and the files whose names begin with it away, then again"}
		}
		name = kept + "-" + strconv.Itoa(n)
	}
}

// secondName returns the second name that an interrupted restore has left for
// the file, or nothing.
func (d *File) secondName(info fs.FileInfo) string {
	if links(info) < 2 {
		return ""
	}
	dir, base := filepath.Split(d.path)
	entries, _ := os.ReadDir(dir)
	for _, entry := range entries {
		name := entry.Name()
		if !strings.HasPrefix(name, base+keptMark) && !(strings.HasPrefix(name, "."+base+".") && strings.HasSuffix(name, ".part")) {
			continue
		}
		if other, err := entry.Info(); err == nil && os.SameFile(other, info) {
			return filepath.Join(dir, name)
		}
	}
	return ""
}

// undoSetAside undoes steps 2 and 3, if a restore was interrupted there. The
// second name goes last: Open refuses the file until then.
func (d *File) undoSetAside() error {
	old, err := os.Lstat(d.path)
	if err != nil {
		return engine.FileError(err, d.path)
	}
	second := d.secondName(old)
	if second == "" {
		return nil
	}
	for _, end := range besideEnds {
		if _, err := os.Lstat(second + end); err != nil {
			continue
		}
		if _, err := os.Lstat(d.path + end); err == nil {
			return &jobs.Error{Kind: jobs.ErrConflict, What: d.path + end + " and " + second + end + " exist",
				Why:  []string{"a restore was interrupted, and another program has written to the database since"},
				Hint: "move one of the two away, then again"}
		}
		if err := os.Rename(second+end, d.path+end); err != nil {
			return backupProblem(err, d.path+end)
		}
	}
	if err := syncDir(filepath.Dir(d.path)); err != nil {
		return err
	}
	return ignoreMissing(os.Remove(second))
}

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
