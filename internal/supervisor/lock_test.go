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
		t.Errorf("got mode %v, error %v; want mode 0600", info.Mode(), err)
	}
	if _, err := NewLock(path); !errors.Is(err, os.ErrExist) {
		t.Errorf("second NewLock: got error %v, want %v", err, os.ErrExist)
	}
	// fd stands for the descriptor of a guardian: it is a second descriptor of
	// the same open file description.
	fd, err := unix.Dup(int(l.file.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := TakeLock(path); !errors.Is(err, ErrHeld) {
		t.Errorf("TakeLock while the lock is held: got error %v, want %v", err, ErrHeld)
	}
	l.Close()
	if _, err := TakeLock(path); !errors.Is(err, ErrHeld) {
		t.Errorf("TakeLock after the first descriptor was closed: got error %v, want %v", err, ErrHeld)
	}
	unix.Close(fd)
	l, err = TakeLock(path)
	if err != nil || !l.Clean() {
		t.Fatal(err)
	}
	if intact, present := l.Intact(); !intact || !present {
		t.Errorf("Intact: got %v, %v; want true, true", intact, present)
	}
	second, err := TakeLock(path) // take the lock a second time, as another process may do meanwhile
	if err != nil {
		t.Fatalf("second TakeLock: got error %v, want none", err)
	}
	second.Close()
	// This second open file stands for another process, which opens the lock
	// file before Remove but locks it after Remove.
	late, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if err := l.Remove(); err != nil {
		t.Errorf("Remove: got error %v, want none", err)
	}
	if intact, present := l.Intact(); intact || present {
		t.Errorf("Intact without a file: got %v, %v; want false, false", intact, present)
	}
	l.Close()
	if intact, _ := lockOf(late, path).Intact(); intact {
		t.Error("Intact of a removed lock: got true, want false")
	}
	if _, err := TakeLock(path); !errors.Is(err, ErrNoLock) {
		t.Errorf("TakeLock without a file: got error %v, want %v", err, ErrNoLock)
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
			t.Errorf("TakeLock of a %s: got no error, want one", name)
			l.Close()
		}
		if _, err := NewLock(filepath.Join(dir, name)); err == nil {
			t.Errorf("NewLock of a %s: got no error, want one", name)
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
		t.Error("Clean of a new lock: got false, want true")
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
	if got, want := recordsOf(path), []record{{a, l.cgroupDir(0)}, {b, l.cgroupDir(4)}}; !slices.Equal(got, want) || l.Clean() {
		t.Errorf("got records %+v, want %+v; Clean must be false", got, want)
	}
	if got := l.recordedKey(4); got != b {
		t.Errorf("got record %+v, want %+v", got, b)
	}
	if err := errors.Join(l.setRecord(0, Key{}), l.setRecord(4, Key{})); err != nil || !l.Clean() {
		t.Errorf("got records %+v, error %v; want neither", recordsOf(l.Path()), err)
	}
	if err := l.file.Truncate(3); err != nil || l.Clean() {
		t.Errorf("Clean of a truncated lock file: got true, error %v; want false", err)
	}
}
