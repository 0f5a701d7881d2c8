package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"

	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// TestEachCodeOfSQLiteHasItsCause: the driver doesn't tell the errno, so the
// room on the disk decides whether a failed write means that the disk is full.
func TestEachCodeOfSQLiteHasItsCause(t *testing.T) {
	var (
		plenty   = room{1 << 30, 1 << 31, 1000, 2000}
		full     = room{4096, 1 << 31, 1000, 2000}
		noInodes = room{1 << 30, 1 << 31, 0, 2000}
		unknown  = room{}
	)
	const (
		diskFull = "the disk is full: /nowhere/q.db"
		inodes   = "the disk has no inodes left: /nowhere/q.db"
		fault    = "cannot read or write /nowhere/q.db"
		readOnly = "cannot write /nowhere/q.db"
		damaged  = "database is damaged: /nowhere/q.db"
		busy     = "database is busy: /nowhere/q.db"
		other    = "/nowhere/q.db is not a runner database"
	)
	for _, c := range []struct {
		code int
		room room
		kind error
		what string
	}{
		{sqlite3.SQLITE_FULL, plenty, jobs.ErrFull, diskFull},
		{sqlite3.SQLITE_FULL, noInodes, jobs.ErrFull, inodes},
		{sqlite3.SQLITE_IOERR_SHMSIZE, full, jobs.ErrFull, diskFull},
		{sqlite3.SQLITE_IOERR_SHMSIZE, noInodes, jobs.ErrFull, inodes},
		{sqlite3.SQLITE_IOERR_SHMSIZE, plenty, jobs.ErrCorrupt, fault},
		{sqlite3.SQLITE_IOERR_SHMSIZE, unknown, jobs.ErrCorrupt, fault},
		{sqlite3.SQLITE_IOERR_SHMOPEN, full, jobs.ErrFull, diskFull},
		{sqlite3.SQLITE_IOERR_SHMMAP, full, jobs.ErrFull, diskFull},
		{sqlite3.SQLITE_IOERR_WRITE, full, jobs.ErrFull, diskFull},
		{sqlite3.SQLITE_IOERR_FSYNC, full, jobs.ErrFull, diskFull},
		{sqlite3.SQLITE_IOERR_TRUNCATE, full, jobs.ErrFull, diskFull},
		{sqlite3.SQLITE_IOERR_READ, full, jobs.ErrCorrupt, fault},
		{sqlite3.SQLITE_IOERR_LOCK, full, jobs.ErrCorrupt, fault},
		{sqlite3.SQLITE_CANTOPEN, noInodes, jobs.ErrFull, inodes},
		{sqlite3.SQLITE_CANTOPEN, plenty, jobs.ErrPermission, readOnly},
		{sqlite3.SQLITE_READONLY_CANTINIT, full, jobs.ErrFull, diskFull},
		{sqlite3.SQLITE_READONLY_DIRECTORY, noInodes, jobs.ErrFull, inodes},
		{sqlite3.SQLITE_READONLY, full, jobs.ErrPermission, readOnly},
		{sqlite3.SQLITE_CORRUPT, full, jobs.ErrCorrupt, damaged},
		{sqlite3.SQLITE_BUSY, full, jobs.ErrBusy, busy},
		{sqlite3.SQLITE_NOTADB, plenty, jobs.ErrSchema, other},
	} {
		cause := errors.New("x")
		err, ok := errors.AsType[*jobs.Error](explainCode(c.code, c.room, cause, "/nowhere/q.db"))
		if !ok || err.Kind != c.kind || err.What != c.what || err.Err != cause {
			t.Errorf("code %d, %+v: got %v, want %v: %s", c.code, c.room, err, c.kind, c.what)
		}
		if full := c.kind == jobs.ErrFull; full != (err.Code == errcode.DiskFull) {
			t.Errorf("code %d, %+v: got the error code %q", c.code, c.room, err.Code)
		}
	}
}

// TestExplainedErrorStaysErrorOfDisk: the writer connects anew after an
// error of the disk, also after it was explained.
func TestExplainedErrorStaysErrorOfDisk(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte(strings.Repeat("text\n", 2000)), 0o600); err != nil {
		t.Fatal(err)
	}

	pool, err := Connect(path, "rw")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()

	err = pool.Ping()
	explained := explain(err, path)
	if d := new(File); !d.Broken(err) || !d.Broken(explained) || !errors.Is(explained, jobs.ErrSchema) {
		t.Errorf("got error %v, and explained %v, want both to be of the disk", err, explained)
	}
}
