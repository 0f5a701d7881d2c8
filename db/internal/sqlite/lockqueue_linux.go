package sqlite

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The operations of futex(2), between processes.
const (
	futexWait = 0
	futexWake = 1
)

// sleepWhile sleeps while the word has a value, until another process wakes it or the time has passed. It returns false when it cannot.
func sleepWhile(word *atomic.Uint32, value uint32, longest time.Duration) bool {
	if longest <= 0 {
		return false
	}
	limit := unix.NsecToTimespec(int64(longest))
	_, _, err := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait, uintptr(value), uintptr(unsafe.Pointer(&limit)),
		0, 0)
	return err == 0 || err == unix.EAGAIN || err == unix.ETIMEDOUT || err == unix.EINTR
}

// wake wakes so many of those that sleep on the word, at most. It returns false when there are none.
func wake(word *atomic.Uint32, most int) bool {
	n, _, err := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, uintptr(most), 0, 0, 0)
	return err == 0 && n > 0
}

// Places in the shared memory.
const (
	commitsAt = 8   // SQLite's counter of commits, in the header of the WAL-index
	queueAt   = 120 // the words of the lock queue: the eight bytes from here are those that SQLite locks, and it never reads or writes them
	quickAt   = 124
)

// word returns the word at a place in the shared memory, for as long as SQLite has that mapped; nil: it cannot be used.
func (s *sharedMemory) word(place uintptr) *atomic.Uint32 {
	if s == nil || !s.writable {
		return nil
	}
	address := uintptr(s.start) + place
	return *(**atomic.Uint32)(unsafe.Pointer(&address)) // memory that Go does not manage
}
