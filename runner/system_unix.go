//go:build unix

package runner

import "syscall"

// openNoFollow opens a file without following a link, and without waiting on a fifo.
const openNoFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK
