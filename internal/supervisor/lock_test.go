//go:build unix

package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

func TestLockIsFreeWhenItsLastHolderIsGone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	l, err := NewLock(path)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Error(info.Mode(), err)
	}
	if _, err := NewLock(path); !errors.Is(err, os.ErrExist) {
		t.Error("made twice:", err)
	}
	// As the guardian: a second descriptor of the same description.
	fd, err := unix.Dup(int(l.file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TakeLock(path); !errors.Is(err, ErrHeld) {
		t.Error("taken while held:", err)
	}
	l.Close()
	if _, err := TakeLock(path); !errors.Is(err, ErrHeld) {
		t.Error("closing one descriptor freed it:", err)
	}
	unix.Close(fd)
	l, err = TakeLock(path)
	if err != nil || !l.Clean() {
		t.Fatal(err)
	}
	if intact, present := l.Intact(); !intact || !present {
		t.Error("not intact")
	}
	second, err := TakeLock(path) // by another reaper, while the first one is stopped
	if err != nil {
		t.Fatalf("a second finder: got %v, want the lock", err)
	}
	second.Close()
	late, err := os.OpenFile(path, os.O_RDWR, 0) // of a finder that opened the file in time, and asks for the lock too late
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if err := l.Remove(); err != nil {
		t.Error(err)
	}
	if intact, present := l.Intact(); intact || present {
		t.Error("intact without a file")
	}
	l.Close()
	if intact, _ := (&Lock{late, path}).Intact(); intact {
		t.Error("a removed lock passes for one")
	}
	if _, err := TakeLock(path); !errors.Is(err, ErrNoLock) {
		t.Error(err)
	}
}

func TestLockFollowsNoLinkAndWaitsForNoFifo(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/file", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(dir+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "fifo"} {
		if l, err := TakeLock(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s: taken", name)
			l.Close()
		}
		if _, err := NewLock(filepath.Join(dir, name)); err == nil {
			t.Errorf("%s: made", name)
		}
	}
}

func TestRecordsAreReadBackBySlot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.lock")
	l, err := NewLock(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if !l.Clean() {
		t.Error("a new lock is not clean")
	}
	a, b := Key{1, 2}, Key{1 << 40, 7}
	for slot, k := range map[int]Key{0: a, 1: {5, 5}, 4: b} {
		if err := l.setRecord(slot, k); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.setRecord(1, Key{}); err != nil {
		t.Fatal(err)
	}
	if got, want := ReadRecords(path), []Record{{a, l.cgroupDir(0)}, {b, l.cgroupDir(4)}}; !slices.Equal(got, want) || l.Clean() {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if r, ok := l.record(4); !ok || r.Key != b {
		t.Errorf("got %+v, %v, want %+v", r, ok, b)
	}
	if err := errors.Join(l.setRecord(0, Key{}), l.setRecord(4, Key{})); err != nil || !l.Clean() {
		t.Errorf("got %+v, %v, want none", l.Records(), err)
	}
	if err := l.file.Truncate(3); err != nil || l.Clean() {
		t.Error("a lock file that was cut off counts as clean", err)
	}
}
