package supervisor

import (
	"time"

	"golang.org/x/sys/unix"
)

// SinceBoot returns the time since boot, including the time in suspend. Nobody can set this clock. It returns 0 on
// systems without such a clock.
func SinceBoot() time.Duration {
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &at) // this clock always exists since Linux 2.6.39
	return time.Duration(at.Nano())
}

// monotonic reads CLOCK_MONOTONIC in nanoseconds. The worker and the guardian share this clock, and nobody can set it.
func monotonic() int64 {
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &at) // this clock always exists
	return at.Nano()
}

// clockAt converts a time to CLOCK_MONOTONIC. It reads CLOCK_MONOTONIC before it calls time.Until. If this process is stopped between the
// two calls, the result is too early and never too late.
func clockAt(t time.Time) int64 {
	at := monotonic()
	return at + int64(time.Until(t))
}
