//go:build !unix

package signals

import "os"

// statusRequests ask a worker what it is doing. This system has none.
var statusRequests []os.Signal
