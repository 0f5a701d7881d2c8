package runner

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// sinceBoot reads a clock that nobody can set and that goes on while the machine is suspended.
func sinceBoot() time.Duration {
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_BOOTTIME, &at) // cannot fail since Linux 2.6.39
	return time.Duration(at.Nano())
}

// bootID tells one run of this host's kernel from another.
func bootID() string {
	text, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // empty where there is none
	return strings.TrimSpace(string(text))
}

// pidNamespace names the set of processes that this one sees.
func pidNamespace() string {
	name, _ := os.Readlink("/proc/self/ns/pid")
	return name
}
