package supervisor

import (
	"time"

	"golang.org/x/sys/unix"
)

// SinceBoot reads a clock that nobody can set and that goes on while the machine is suspended; 0 on systems without one.
func SinceBoot() time.Duration {
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &at) // cannot fail since Linux 2.6.39
	return time.Duration(at.Nano())
}
