//go:build !linux

package supervisor

import "time"

// SinceBoot returns 0: this system has no clock that counts the time in suspend.
func SinceBoot() time.Duration { return 0 }
