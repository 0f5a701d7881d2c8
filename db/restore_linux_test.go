package db_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/db/dbtest"
	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

// TestDatabaseInUseIsNoBackup gives databases that are open names that look
// like addresses.
func TestDatabaseInUseIsNoBackup(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, name := range []string{"a.db", "server=1.db", "host=web1.db", "file:x"} {
		dbtest.OpenAt(t, filepath.Join(dir, name), db.Options{Create: true})
		testkit.NoError(t, os.Symlink(name, "to-"+name))
		for _, from := range []string{name, "./" + name, "to-" + name} {
			if _, err := db.Restore(t.Context(), "new.db", from, db.Options{}, time.Now()); !errors.Is(err, jobs.ErrConflict) {
				t.Errorf("%s: got error %v, want one that is %v", from, err, jobs.ErrConflict)
			}
			os.Remove("new.db")
		}
	}
}

// TestRestoreNamesFileThatItCannotRead gives the backup a log that can't be
// opened.
func TestRestoreNamesFileThatItCannotRead(t *testing.T) {
	path, backup := crashed(t)
	log := backup + "-wal"
	testkit.NoError(t, os.Symlink(log, log))
	_, err := db.Restore(t.Context(), path, backup, db.Options{}, time.Now())
	e, ok := errors.AsType[*jobs.Error](err)
	if !ok || e.What != "cannot open "+log {
		t.Errorf("got error %v, want one that names %s", err, log)
	}
}
