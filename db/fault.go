package db

import (
	"errors"
	"fmt"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"example.com/runner/jobs"
)

// code returns the primary result code of an error of the driver, or 0.
func code(err error) int {
	if failure, ok := errors.AsType[*sqlite.Error](err); ok {
		return failure.Code() & 0xff
	}
	return 0
}

func isBusy(err error) bool {
	c := code(err)
	return c == sqlite3.SQLITE_BUSY || c == sqlite3.SQLITE_LOCKED
}

// isDamage says whether an error, explained or not, is one of the file or of what it lies on, and not of what was asked of it.
func isDamage(err error) bool {
	switch code(err) {
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
		return true
	}
	return false
}

// explain turns an error of the driver into one that a person can act on, by its code and never by its text. Other errors, and
// nil, pass.
func explain(err error, file string) error {
	if _, ok := errors.AsType[*jobs.Problem](err); ok {
		return err // explained already, by one who knew more
	}
	problem := func(kind error, what, try string, why ...string) error {
		return &jobs.Problem{Kind: kind, What: what, Why: why, Try: try, Err: err}
	}
	switch code(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return problem(jobs.ErrBusy, "database is busy: "+file, "again")
	case sqlite3.SQLITE_FULL:
		return problem(jobs.ErrFull, "no space left for "+file, "free some space on its disk, then again", "nothing was written")
	case sqlite3.SQLITE_NOTADB:
		return problem(jobs.ErrSchema, file+" is not a runner database", "--db another file", "it is not an SQLite file; nothing was changed")
	case sqlite3.SQLITE_CORRUPT:
		return problem(jobs.ErrCorrupt, "database is damaged: "+file, "restore a backup; keep the file", fmt.Sprint(err), "nothing was changed")
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		return problem(jobs.ErrPermission, "cannot write "+file, "check the owner and mode of the file and of its directory",
			"the file, or its directory, is read-only for this user")
	case sqlite3.SQLITE_IOERR:
		return problem(jobs.ErrCorrupt, "cannot read or write "+file, "check the disk", fmt.Sprint(err))
	}
	return err
}
