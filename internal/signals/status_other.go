//go:build !unix

package signals

import "os"

// statusRequests are the signals that ask a worker to log its status. On this operating system there are none.
var statusRequests []os.Signal
