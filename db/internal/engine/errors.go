package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"

	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// IsPoolClosed reports whether err is the error of a closed pool, which
// database/sql doesn't export.
func IsPoolClosed(err error) bool { return err != nil && err.Error() == "sql: database is closed" }

// FileError returns the error of a file or directory that can't be used.
func FileError(err error, path string) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &jobs.Error{Kind: jobs.ErrNoDatabase, What: "no directory " + filepath.Dir(path), Err: err,
			Why: []string{"runner does not create it"}, Hint: "mkdir -p " + filepath.Dir(path)}
	case errors.Is(err, fs.ErrPermission):
		return &jobs.Error{Kind: jobs.ErrPermission, What: "cannot open " + path, Err: err,
			Why: []string{"permission denied"}, Hint: "check the owner and mode of the file and of its directory"}
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return &jobs.Error{Kind: jobs.ErrFull, Code: errcode.DiskFull, What: "no space or no inodes left for " + path, Err: err,
			Why: []string{err.Error(), "nothing was written"}, Hint: "free some space on its disk, then again"}
	default:
		return &jobs.Error{Kind: jobs.ErrPermission, What: "cannot open " + path, Err: err, Why: []string{err.Error()}}
	}
}

// Damaged returns the error of a damaged file, or nil if nothing was found.
func Damaged(path string, found []string) error {
	if len(found) == 0 {
		return nil
	}
	return &jobs.Error{Kind: jobs.ErrCorrupt, What: "database is damaged: " + path,
		Why:  []string{strings.Join(found[:min(len(found), 3)], "; "), "nothing was changed"},
		Hint: "restore a backup; keep the file"}
}

// Newer returns the error of a database whose schema this program doesn't know.
func Newer(name, code string, have, want int, hint string) error {
	return &jobs.Error{Kind: jobs.ErrSchema, Code: code, Subject: name, What: name + " was written by a newer runner", Hint: hint,
		Why: []string{fmt.Sprintf("its schema is %d, this one knows %d; opening could damage it", have, want)}}
}

// NotUpgraded returns the error of a database with an older schema that is
// opened for reading.
func NotUpgraded(name string) error {
	return &jobs.Error{Kind: jobs.ErrSchema, What: name + " has an older schema",
		Why: []string{"it is opened for reading, and not upgraded"}}
}

// ErrReadOnly returns the error of a write to a database that was opened for
// reading. err is the cause, or nil.
func ErrReadOnly(path string, err error) error {
	return &jobs.Error{Kind: jobs.ErrPermission, What: "cannot write " + path, Err: err,
		Why: []string{"the database was opened with Options.ReadOnly"}, Hint: "open it without Options.ReadOnly"}
}
