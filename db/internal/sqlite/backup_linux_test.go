package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"example.com/runner/jobs"
)

// What takes the place of the file while the copy is made is not replaced either.
func TestABackupReplacesRegularFilesOnlyAtItsEnd(t *testing.T) {
	dir := t.TempDir()
	part, to := filepath.Join(dir, "part"), filepath.Join(dir, "fifo")
	if err := os.WriteFile(part, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(to, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := place(part, to, true); !errors.Is(err, jobs.ErrConflict) {
		t.Errorf("got %v, want a conflict", err)
	}
	if info, err := os.Lstat(to); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Error("the FIFO was replaced", err)
	}
}
