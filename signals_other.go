//go:build !unix

package main

import "os"

// statusSignals ask a worker what it is doing. This system has none.
var statusSignals []os.Signal
