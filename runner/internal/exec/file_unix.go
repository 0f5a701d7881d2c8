//go:build unix

package exec

import "syscall"

// Flags of open.
const (
	openNoFollow = syscall.O_NOFOLLOW                    // does not open a symbolic link
	openNonblock = syscall.O_NONBLOCK | syscall.O_NOCTTY // does not wait for the writer of a FIFO
)
