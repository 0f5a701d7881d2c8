//go:build unix

package main

import (
	"os"
	"syscall"
)

// statusSignals ask a worker what it is doing.
var statusSignals = []os.Signal{syscall.SIGUSR1}
