//go:build !linux

package engine

import "errors"

var errNeedsLinux = errors.New("it needs Linux")

// loadAverage returns an error, because only Linux has a file that shows the load average.
func loadAverage() (float64, error) { return 0, errNeedsLinux }

// freeMemory returns an error, because only Linux has a file that shows how much memory is free.
func freeMemory() (int64, error) { return 0, errNeedsLinux }

// BootID returns an empty text, because this system has no boot id.
func BootID() string { return "" }

// pidNamespace returns an empty text, because all processes of this system are in one namespace.
func pidNamespace() string { return "" }
