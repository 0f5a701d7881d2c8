package supervisor

import (
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// ownChildren are the pids of the guardians that this process waits for. The function that starts a guardian holds a read lock of startMu
// until it has added the new pid to ownChildren. So adopted never lists a guardian.
var (
	ownChildren sync.Map
	startMu     sync.RWMutex
)

// Dedicate prepares a process that is only a worker. This process becomes the parent of the orphans of a dead guardian.
// It kills these orphans. Commands of the same user cannot read the memory or the
// environment of this process, and it leaves no core dump.
func Dedicate() error {
	err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	if err == nil {
		dedicated.Store(true)
		err = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	}
	return os.NewSyscallError("prctl", err)
}

// Deaths returns a channel that receives when a child of this process has
// ended, until stop is called.
func Deaths() (deaths <-chan os.Signal, stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGCHLD)
	return c, func() { signal.Stop(c) }
}

// ReapAdopted reaps dead children that this process did not start. A process has such children if it is a subreaper or
// the first process of a container. ReapAdopted never blocks.
func ReapAdopted() {
	for _, pid := range adopted() {
		_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
	}
}

var (
	dedicated atomic.Bool // whether this process becomes the parent of orphans
	hasLeft   atomic.Bool // whether a command of this process may have left processes behind
)

// killAdopted kills and reaps the orphans of dead guardians. As soon as a
// command that may leave processes behind has started, it kills only those with
// the mark.
func killAdopted(mark Mark) {
	if !dedicated.Load() {
		return
	}
	for _, pid := range adopted() {
		if m, _ := readMark(pid); hasLeft.Load() && m != mark {
			continue
		}
		_ = unix.Kill(pid, unix.SIGKILL) // the call fails for a process of another user
		_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
	}
}

// adopted lists the children that this process did not start. It omits guardians. It also omits processes in the
// session of this process, because the program may have started them without this package.
func adopted() []int {
	session, _ := unix.Getsid(0)
	// Do not wait for the lock: the start of a guardian holds it, and may hang in exec. A later call finds the orphans.
	if !startMu.TryLock() {
		return nil
	}
	defer startMu.Unlock()
	return slices.DeleteFunc(children(), func(pid int) bool {
		_, mine := ownChildren.Load(pid)
		of, err := unix.Getsid(pid)
		return mine || err != nil || of == session
	})
}
