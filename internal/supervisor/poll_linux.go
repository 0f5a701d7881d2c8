package supervisor

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A guardian is busy for some microseconds at a time, and with short commands
// waits less than a millisecond in between. When a goroutine blocks in the
// usual way, Go's scheduler gives the processor to other threads, which look
// for work, and a monitor thread checks the blocked ones every 20 µs. They cost
// as much processor time as everything else that a guardian does, except the
// fork.
//
// So a thread first waits for the next event in a raw system call, which the
// scheduler doesn't know about. If nothing comes for a while, it waits in the
// usual way. When the garbage collector stops a thread, it sends a signal,
// which also interrupts the raw call.

// rawPollTime limits a wait in a raw system call. Most pauses of a busy
// guardian are shorter.
const rawPollTime = 20 * time.Millisecond

// awaitReadable waits until a descriptor is readable or at its end.
func awaitReadable(fd int) {
	if readableWithin(fd, rawPollTime) {
		return
	}

	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(fds, -1); err != unix.EINTR {
			return
		}
	}
}

// readableWithin waits in a raw system call and reports whether a descriptor
// became readable. The limit must be short, because the scheduler doesn't know
// that the thread waits.
func readableWithin(fd int, limit time.Duration) bool {
	end := monotonic() + int64(limit)
	for left := int64(limit); left > 0; left = end - monotonic() {
		n, err := pollRaw(fd, left)
		if err != unix.EINTR {
			return n > 0 || err != 0
		}
	}

	return false
}

// pollRaw waits in ppoll without the scheduler's knowledge. It must not be
// inlined: a goroutine can be stopped at the start of a function, so each call
// in a loop lets the garbage collector stop this thread.
//
//go:noinline
func pollRaw(fd int, ns int64) (int, unix.Errno) {
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	limit := unix.NsecToTimespec(ns)
	n, _, err := unix.RawSyscall6(unix.SYS_PPOLL,
		uintptr(unsafe.Pointer(&fds[0])), 1, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	return int(n), err
}

// SinceBoot returns the time since boot, with the time in suspend. Nobody can
// set this clock. Systems without it return 0.
func SinceBoot() time.Duration {
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &at) // this clock always exists since Linux 2.6.39
	return time.Duration(at.Nano())
}

// monotonic reads CLOCK_MONOTONIC in nanoseconds. The worker and the guardian
// share this clock, and nobody can set it.
func monotonic() int64 {
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &at) // this clock always exists
	return at.Nano()
}

// clockAt converts a time to CLOCK_MONOTONIC. If this process is stopped
// between the two readings, the result is too early, never too late.
func clockAt(t time.Time) int64 {
	at := monotonic()
	return at + int64(time.Until(t))
}
