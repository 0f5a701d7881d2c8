package sqlite

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/runner/jobs"
)

// TestErrorOfDiskDuringCopyNamesBackup reads a file that always fails.
func TestErrorOfDiskDuringCopyNamesBackup(t *testing.T) {
	const broken = "/proc/self/mem"
	err := copyFile(t.Context(), filepath.Join(t.TempDir(), "copy"), broken)
	if !errors.Is(err, jobs.ErrCorrupt) || !strings.Contains(err.Error(), broken) {
		t.Errorf("got error %v, want one that is %v and names %s", err, jobs.ErrCorrupt, broken)
	}
}

// TestNobodyElseHasCopyOpen locks shared memory as another process does. A
// copy counts as this process's own also on systems that show no locks.
func TestNobodyElseHasCopyOpen(t *testing.T) {
	d := &File{sharedPath: filepath.Join(t.TempDir(), "q.db-shm")}
	file, err := os.Create(d.sharedPath)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()

	lock := &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: inUseByte, Len: 1}
	if err := unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, lock); err != nil { // shown as of no process
		t.Fatal(err)
	}

	for _, alone := range []bool{false, true} {
		d.options.Alone = alone
		if got := d.othersOpen(); got == alone {
			t.Errorf("alone %v: got that others have it open: %v", alone, got)
		}
	}
}
