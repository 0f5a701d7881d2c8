package supervisor

import (
	"os"

	"golang.org/x/sys/unix"
)

// Pipe makes a pipe whose write end goes to a command. Unlike with os.Pipe, writes block, as programs expect, and Go's poller does not
// watch the write end.
func Pipe() (r, w *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC|unix.O_NONBLOCK); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	_, _ = unix.FcntlInt(uintptr(fds[1]), unix.F_SETFL, unix.O_WRONLY) // this call cannot fail
	return os.NewFile(uintptr(fds[0]), "|0"), os.NewFile(uintptr(fds[1]), "|1"), nil
}
