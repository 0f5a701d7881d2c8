//go:build !linux

package process

import "os"

// Pipe is os.Pipe.
func Pipe() (r, w *os.File, err error) { return os.Pipe() }
