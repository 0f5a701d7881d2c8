//go:build unix

package exec

import "syscall"

// Flags of open.
const (
	openNoFollow = syscall.O_NOFOLLOW                    // open fails if the path is a symbolic link
	openNonblock = syscall.O_NONBLOCK | syscall.O_NOCTTY // open does not wait for the writer of a FIFO
)
