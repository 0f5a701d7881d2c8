//go:build unix

package ops

import (
	"os"

	"golang.org/x/sys/unix"
)

// hungUp reports whether a pipe is empty and has no writer.
func hungUp(file *os.File) bool {
	poll := []unix.PollFd{{Fd: int32(file.Fd()), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, 0)
	return err == nil && n == 1 && poll[0].Revents&unix.POLLHUP != 0 && poll[0].Revents&unix.POLLIN == 0
}
