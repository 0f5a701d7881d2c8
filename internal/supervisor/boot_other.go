//go:build !linux

package supervisor

import "time"

// SinceBoot reads a clock that nobody can set and that goes on while the machine is suspended; 0 on systems without one.
func SinceBoot() time.Duration { return 0 }
