//go:build !linux

package supervisor

import "os"

// Pipe calls os.Pipe.
func Pipe() (r, w *os.File, err error) { return os.Pipe() }
