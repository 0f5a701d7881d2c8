//go:build !unix

package signals

import "os"

// statusRequests are the signals that request a worker's status. This system has none.
var statusRequests []os.Signal
