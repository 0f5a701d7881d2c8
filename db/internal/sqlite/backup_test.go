package sqlite

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"example.com/runner/db/internal/engine"
	"example.com/runner/jobs"
)

// TestNewCopyRemovesAllThatKilledOneLeft makes the files of an old partial
// copy.
func TestNewCopyRemovesAllThatKilledOneLeft(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, ".q.db.12345678.part")
	if err := os.Mkdir(left+".d", 0o700); err != nil {
		t.Fatal(err)
	}

	for _, end := range []string{"", "-wal", "-shm", ".d/init.lock"} {
		if err := os.WriteFile(left+end, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}

	old := time.Now().Add(-2 * minPartAge)
	if err := os.Chtimes(left, old, old); err != nil {
		t.Fatal(err)
	}

	newPart(dir, ".q.db.")

	names, err := filepath.Glob(filepath.Join(dir, ".q*"))
	if err != nil || len(names) > 0 {
		t.Errorf("got files %q and error %v, want none", names, err)
	}
}

// TestCopyIsRemovedAfterFilesBesideIt keeps a file beside a copy from being
// removed, as a kill would. Only the copy leads the next one to the rest.
func TestCopyIsRemovedAfterFilesBesideIt(t *testing.T) {
	part := filepath.Join(t.TempDir(), "part")
	if err := os.WriteFile(part, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(part+"-wal", "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}

	removeCopy(part)

	if _, err := os.Stat(part); err != nil {
		t.Errorf("got error %v, want the copy", err)
	}
}

func TestFailedCopyHasNoSize(t *testing.T) {
	fill := func(string) (int64, error) { return 4096, nil }
	place := func(string) error { return fs.ErrExist }

	size, err := newFile(filepath.Join(t.TempDir(), "q.db"), fill, place)
	if size != 0 || !errors.Is(err, jobs.ErrConflict) {
		t.Errorf("got size %d and error %v, want 0 and an error that is %v", size, err, jobs.ErrConflict)
	}
}

func TestFailedRestoreHasNoResult(t *testing.T) {
	dir := t.TempDir()
	backup := filepath.Join(dir, "backup.db")
	if err := os.WriteFile(backup, []byte("no database, but a file"), 0o600); err != nil {
		t.Fatal(err)
	}

	got, err := Restore(t.Context(), filepath.Join(dir, "q.db"), backup, engine.Options{}, time.Now())
	if err == nil || got != (Restored{}) {
		t.Errorf("got %+v and error %v, want no result and an error", got, err)
	}
}
