package supervisor

import (
	"time"

	"golang.org/x/sys/unix"
)

// usageOf converts the usage that wait4 reports. The usage includes a process and the descendants for which it
// has waited.
// The kernel counts transfers in blocks of 512 bytes. It counts a write when a page becomes dirty, not when the page
// reaches the disk.
func usageOf(r *unix.Rusage) Usage {
	const block = 512
	return Usage{User: time.Duration(r.Utime.Nano()), System: time.Duration(r.Stime.Nano()), MaxRSS: int64(r.Maxrss) << 10,
		Read: int64(r.Inblock) * block, Written: int64(r.Oublock) * block}
}
