package sqlite

import (
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// These are the operations of futex(2) that also work between processes.
const (
	futexWait = 0
	futexWake = 1
)

// sleepWhile sleeps if the word has the given value, until another process wakes it or the time has passed. It returns false if it cannot
// sleep.
func sleepWhile(word *atomic.Uint32, value uint32, longest time.Duration) bool {
	if longest <= 0 {
		return false
	}
	limit := unix.NsecToTimespec(int64(longest))
	_, _, err := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWait, uintptr(value), uintptr(unsafe.Pointer(&limit)),
		0, 0)
	return err == 0 || err == unix.EAGAIN || err == unix.ETIMEDOUT || err == unix.EINTR
}

// wake wakes processes that sleep on the word, at most as many as the parameter "most" says. It returns false if no process sleeps on the
// word.
func wake(word *atomic.Uint32, most int) bool {
	n, _, err := unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(word)), futexWake, uintptr(most), 0, 0, 0)
	return err == 0 && n > 0
}

// These are places in the shared memory, in bytes from its beginning.
const (
	commitsAt = 8   // counter of commits of SQLite, in the header of the WAL-index
	queueAt   = 120 // first word of the lock queue: SQLite only locks the eight bytes from here, and never reads or writes them
	quickAt   = 124
)

// word returns the word at an offset in the shared memory, or nil if the memory cannot be written. The word is valid while SQLite has the
// memory mapped.
func (s *sharedMemory) word(place uintptr) *atomic.Uint32 {
	if s == nil || !s.writable {
		return nil
	}
	address := uintptr(s.start) + place
	// This conversion is safe, because the garbage collector does not manage the memory that SQLite has mapped.
	return *(**atomic.Uint32)(unsafe.Pointer(&address))
}
