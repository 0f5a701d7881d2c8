//go:build unix

package signals

import (
	"os"
	"syscall"
)

// statusRequests ask a worker what it is doing.
var statusRequests = []os.Signal{syscall.SIGUSR1}
