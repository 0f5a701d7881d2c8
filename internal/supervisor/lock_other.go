//go:build !unix

package supervisor

import (
	"errors"
	"os"
)

// NewLock is not supported on this system: a lock could not be shared with a guardian.
func NewLock(string) (*Lock, error) { return nil, errors.ErrUnsupported }

// TakeLock proves nothing on this system.
func TakeLock(string) (*Lock, error) { return nil, ErrNoLock }

func openLock(string, int) (*os.File, error) { return nil, errors.ErrUnsupported }
