package sqlite

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// TestLockHolderIsFoundWhileOtherLocksChange calls lockHolder while it changes many other locks. The kernel returns the list of locks in
// pages, so a single read of the list may miss a lock. lockHolder must find the holder nevertheless.
func TestLockHolderIsFoundWhileOtherLocksChange(t *testing.T) {
	dir := t.TempDir()
	open := func(name string) *os.File {
		file, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		return file
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: writeLockByte, Len: 1}
	if err := unix.FcntlFlock(open("x-shm").Fd(), unix.F_SETLK, &lock); err != nil {
		t.Fatal(err)
	}
	others := make([]int, 800)
	for i := range others {
		others[i] = int(open(strconv.Itoa(i)).Fd())
	}
	done := make(chan struct{})
	result := make(chan error, 1)
	go func() {
		for i := 0; ; i++ {
			select {
			case <-done:
				result <- nil
				return
			default:
			}
			if err := unix.Flock(others[i*7%len(others)], []int{unix.LOCK_EX, unix.LOCK_UN}[i/len(others)%2]); err != nil {
				result <- err
				return
			}
		}
	}()
	for range 500 {
		if pid, name := lockHolder(filepath.Join(dir, "x-shm")); pid != os.Getpid() || name == "" {
			t.Errorf("got pid %d and name %q, want pid %d and a name", pid, name, os.Getpid())
			break
		}
	}
	close(done)
	if err := <-result; err != nil {
		t.Fatal(err)
	}
}
