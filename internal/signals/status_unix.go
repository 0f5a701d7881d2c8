//go:build unix

package signals

import (
	"os"
	"syscall"
)

// statusRequests are the signals that ask a worker to log its status.
var statusRequests = []os.Signal{syscall.SIGUSR1}
