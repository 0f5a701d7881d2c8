package supervisor

import (
	"time"

	"golang.org/x/sys/unix"
)

// SinceBoot returns the time since boot, including the time in suspend. Nobody can set this clock. It returns 0 on
// systems without such a clock.
func SinceBoot() time.Duration {
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &at) // always exists since Linux 2.6.39
	return time.Duration(at.Nano())
}
