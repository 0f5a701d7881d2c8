package supervisor

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A guardian is busy for some microseconds at a time, and waits for less than a millisecond between them when commands are short. Go's
// scheduler takes the processor from a goroutine that waits in the usual way, gives it to other threads that look for work, and watches all
// that every 20 µs: this cost as much as all of its work but the fork. So a thread that waits for the next event waits in a raw system call at first, of which
// the scheduler knows nothing, and in the usual way when nothing has come for a while. A thread that the collector of garbage wants to stop
// gets a signal, which ends the raw call, too.

const (
	rawPollTime      = 20 * time.Millisecond // longer than most pauses of a guardian that is busy, on a machine that is busy, too
	startReportDelay = time.Millisecond      // for a command to end before the worker is told of its start
)

// awaitReadable returns when there is something to read from a descriptor, or its end.
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

// readableWithin waits in a raw system call, so it must be for a short time. It returns whether there is something to read.
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

// pollRaw is not inlined: its prologue is where a thread stops that the scheduler wants to stop.
//
//go:noinline
func pollRaw(fd int, ns int64) (int, unix.Errno) {
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	limit := unix.NsecToTimespec(ns)
	n, _, err := unix.RawSyscall6(unix.SYS_PPOLL, uintptr(unsafe.Pointer(&fds[0])), 1, uintptr(unsafe.Pointer(&limit)), 0, 0, 0)
	return int(n), err
}
