//go:build unix

package runner

import "syscall"

const (
	openNoFollow = syscall.O_NOFOLLOW                    // does not open a symbolic link
	openNonblock = syscall.O_NONBLOCK | syscall.O_NOCTTY // does not wait for the writer of a FIFO
)
