package sqlite

import (
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"example.com/runner/db/internal/engine"
	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// code returns the primary result code of an error of the driver, or 0.
func code(err error) int {
	if failure, ok := errors.AsType[*driver.Error](err); ok {
		return failure.Code() & 0xff
	}
	return 0
}

func isBusy(err error) bool {
	c := code(err)
	return c == sqlite3.SQLITE_BUSY || c == sqlite3.SQLITE_LOCKED
}

// isDamage reports whether an error, explained or not, comes from the file or
// its disk, and not from the statement.
func isDamage(err error) bool {
	switch code(err) {
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN:
		return true
	}
	return false
}

// explain turns an error of the driver into a *jobs.Error, by its code and
// never by its text. It returns other errors and nil unchanged.
func explain(err error, file string) error {
	if _, ok := errors.AsType[*jobs.Error](err); ok {
		return err
	}
	if engine.IsPoolClosed(err) || errors.Is(err, sql.ErrConnDone) {
		return jobs.ErrClosed
	}

	failure, ok := errors.AsType[*driver.Error](err)
	if !ok {
		return err
	}

	return explainCode(failure.Code(), space(filepath.Dir(file)), err, file)
}

// explainCode explains an extended result code of SQLite. The driver doesn't
// tell the errno behind a code, so a failed write on a disk without room counts
// as a full disk.
func explainCode(extended int, r room, err error, file string) error {
	problem := func(kind error, what, hint string, why ...string) error {
		return &jobs.Error{Kind: kind, What: what, Why: why, Hint: hint, Err: err}
	}
	if extended == sqlite3.SQLITE_BUSY_SNAPSHOT {
		return &jobs.Error{Kind: jobs.ErrConflict, Code: errcode.StaleSnapshot, Err: err, // ErrBusy says "try again"
			What: "the transaction read before another one wrote, so it cannot write any more: " + file,
			Hint: "roll it back and repeat all of it; let a transaction that writes take the lock when it begins, with a handle of " +
				"runner.OpenDB or with _txlock=immediate"}
	}

	full := r.isFull() || r.noInodes()
	switch extended & 0xff {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return problem(jobs.ErrBusy, "database is busy: "+file, "again")
	case sqlite3.SQLITE_FULL:
		return fullError(r, file, err)
	case sqlite3.SQLITE_NOTADB:
		e := notRunner(file, " is not a runner database", "it is not an SQLite file; nothing was changed")
		e.Err = err
		return e
	case sqlite3.SQLITE_CORRUPT:
		return problem(jobs.ErrCorrupt, "database is damaged: "+file, "restore a backup; keep the file", fmt.Sprint(err),
			"nothing was changed")
	case sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM:
		if full && extended != sqlite3.SQLITE_READONLY && extended != sqlite3.SQLITE_READONLY_DBMOVED {
			return fullError(r, file, err)
		}
		return readOnly(err, file)
	case sqlite3.SQLITE_IOERR:
		if full && !isRead(extended) {
			return fullError(r, file, err)
		}
		return problem(jobs.ErrCorrupt, "cannot read or write "+file, "check the disk", fmt.Sprint(err))
	}

	return err
}

func notRunner(file, what string, why ...string) *jobs.Error {
	return &jobs.Error{Kind: jobs.ErrSchema, Code: errcode.NotRunner, Subject: file, What: file + what, Why: why, Hint: "another file"}
}

// isRead reports whether an I/O error came from reading or locking, which needs
// no space.
func isRead(extended int) bool {
	switch extended {
	case sqlite3.SQLITE_IOERR_READ, sqlite3.SQLITE_IOERR_SHORT_READ, sqlite3.SQLITE_IOERR_FSTAT, sqlite3.SQLITE_IOERR_RDLOCK,
		sqlite3.SQLITE_IOERR_UNLOCK, sqlite3.SQLITE_IOERR_LOCK, sqlite3.SQLITE_IOERR_CHECKRESERVEDLOCK, sqlite3.SQLITE_IOERR_NOMEM,
		sqlite3.SQLITE_IOERR_ACCESS, sqlite3.SQLITE_IOERR_CORRUPTFS, sqlite3.SQLITE_IOERR_DATA:
		return true
	}
	return false
}

// readOnly returns the error of a file that can't be written.
func readOnly(err error, file string) error {
	p := &jobs.Error{Kind: jobs.ErrPermission, What: "cannot write " + file, Err: err,
		Why: []string{
			"the file, or its directory, is read-only for this user",
			"a user who may only read the file can do so while another process has it open, such as a worker",
		},
		Hint: "check the owner and mode of the file and of its directory"}
	if errors.Is(writable(filepath.Dir(file)), syscall.EROFS) {
		p.Why = []string{"its filesystem is mounted read-only", "to read the tasks meanwhile, copy the files to another disk"}
		p.Hint = "remount it for writing; the kernel may have made it read-only after a disk error"
	}

	return p
}
