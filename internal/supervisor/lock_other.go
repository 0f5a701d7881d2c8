//go:build !unix

package supervisor

import (
	"errors"
	"os"
)

// NewLock returns an error: on this system, a guardian couldn't share a lock.
func NewLock(string) (*Lock, error) { return nil, errors.ErrUnsupported }

// TakeLock returns ErrNoLock: on this system there are no locks.
func TakeLock(string) (*Lock, error) { return nil, ErrNoLock }

func openLock(string, int) (*os.File, error) { return nil, errors.ErrUnsupported }
