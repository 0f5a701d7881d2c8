//go:build unix

package signals

import (
	"os"
	"syscall"
)

// statusRequests are the signals that request a worker's status.
var statusRequests = []os.Signal{syscall.SIGUSR1}
