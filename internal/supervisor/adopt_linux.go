package supervisor

import (
	"os"
	"os/signal"
	"slices"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// ownChildren are the pids of the guardians that this process waits for.
// Whoever starts a guardian holds a read lock of startMu until the new pid is
// in ownChildren, so adopted never lists a guardian.
var (
	ownChildren sync.Map
	startMu     sync.RWMutex
)

// Dedicate prepares a process that is only a worker. It becomes the parent of a
// dead guardian's orphans, and kills them. Commands of the same user can't read
// its memory or environment, and it leaves no core dump.
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

// ReapAdopted reaps dead children that this process didn't start, as a
// subreaper or the first process of a container has them. It never blocks.
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

// adopted lists the children that this process didn't start. It omits
// guardians, and processes in this process's session, which the program may
// have started without this package.
func adopted() []int {
	session, _ := unix.Getsid(0)
	// Don't wait for the lock: the start of a guardian holds it, and may hang
	// in exec. A later call finds the orphans.
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
