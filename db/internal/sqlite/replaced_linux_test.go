package sqlite

import (
	"errors"
	"os"
	"strings"
	"syscall"
	"testing"

	"example.com/runner/jobs"
)

// TestCheckpointsAreNotTakenForReplacedFiles changes the database file by
// checkpoints of another connection. After some of these checkpoints SQLite
// also writes the log from its beginning. No check may report a replaced file.
func TestCheckpointsAreNotTakenForReplacedFiles(t *testing.T) {
	d, conn := openFile(t)
	other, err := Connect(d.path, "rw")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()

	for i := range 40 {
		if _, err := conn.ExecContext(t.Context(), "INSERT INTO last_ids (id) VALUES (?)", i+1); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
		if err := d.Committed(true); err != nil {
			t.Fatalf("write %d: %v", i, err)
		}
		switch i % 3 {
		case 0:
			_, err = other.Exec("PRAGMA wal_checkpoint(PASSIVE)")
		case 1:
			_, err = other.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestEmptiedFileIsNamedBeforeItsLog empties the database. The next process
// that opens the empty file removes its log, which must not hide the cause.
func TestEmptiedFileIsNamedBeforeItsLog(t *testing.T) {
	d, _ := openFile(t)

	if err := errors.Join(os.Truncate(d.path, 0), os.Remove(d.logPath)); err != nil {
		t.Fatal(err)
	}

	if err := d.Replaced(); err == nil || !strings.Contains(err.Error(), "was emptied") {
		t.Errorf("got %v, want an error that says that the file was emptied", err)
	}
}

// TestNewConnectionKeepsLogOfEmptiedFile empties the database and lets the
// pool of the readers open one more connection. SQLite removes the log of an
// empty file when a connection of it begins to read.
func TestNewConnectionKeepsLogOfEmptiedFile(t *testing.T) {
	d, conn := openFile(t)
	if _, err := conn.ExecContext(t.Context(), "INSERT INTO last_ids (id) VALUES (1)"); err != nil {
		t.Fatal(err)
	}

	held, err := d.read.Connx(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()

	if err := os.Truncate(d.path, 0); err != nil {
		t.Fatal(err)
	}

	var ids []int64
	err = d.read.Select(&ids, "SELECT id FROM last_ids")

	if !errors.Is(err, jobs.ErrReplaced) {
		t.Errorf("got %v, want an error that says that the file was emptied", err)
	}
	if info, err := os.Stat(d.logPath); err != nil || info.Size() == 0 {
		t.Errorf("the log has gone: %v", err)
	}
}

// TestFileThatCannotBeLookedAtIsNotReplaced reports what the system says about
// each file, such as in a directory that this user may no longer search.
func TestFileThatCannotBeLookedAtIsNotReplaced(t *testing.T) {
	d := &File{path: "/data/q.db", logPath: "/data/q.db-wal"}
	for _, name := range []string{d.path, d.logPath} {
		for cause, want := range map[error]error{
			nil: jobs.ErrReplaced, syscall.ENOENT: jobs.ErrReplaced, syscall.EACCES: jobs.ErrPermission, syscall.EIO: jobs.ErrPermission,
		} {
			err := d.lostFile(name, cause)
			if !errors.Is(err, want) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s, %v: got error %v, want one that is %v", name, cause, err, want)
			}
		}
	}
}
