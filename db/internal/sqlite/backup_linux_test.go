package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"example.com/runner/jobs"
)

// TestBackupKeepsFileThatAppearsDuringCopy checks the last step of a backup,
// which renames the copy to its final name. This step must not replace a FIFO
// that was created during the copy.
func TestBackupKeepsFileThatAppearsDuringCopy(t *testing.T) {
	dir := t.TempDir()
	part, to := filepath.Join(dir, "part"), filepath.Join(dir, "fifo")
	if err := os.WriteFile(part, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(to, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := place(part, to, true); !errors.Is(err, jobs.ErrConflict) {
		t.Errorf("got error %v, want one that is %v", err, jobs.ErrConflict)
	}
	if info, err := os.Lstat(to); err != nil || info.Mode().Type() != os.ModeNamedPipe {
		t.Errorf("got file %v and error %v, want the FIFO", info, err)
	}
}
