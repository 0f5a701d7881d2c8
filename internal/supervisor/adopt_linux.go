package supervisor

import (
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// Dedicate prepares a process that is a worker and nothing else. What a dead guardian leaves becomes its child, and is killed by
// GuardianOptions.Adopt. Commands, which may be of the same user, cannot read its memory and environment; it leaves no core dump.
func Dedicate() error {
	return os.NewSyscallError("prctl", firstOf(unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)))
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// ReapAdopted waits for dead children that this process did not start: it has them as a subreaper, or as the first process of a
// container. It never blocks.
func ReapAdopted() {
	for _, pid := range adopted() {
		if !running(pid) {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

// killAdopted kills what dead guardians have left to this process.
func killAdopted() {
	for _, pid := range adopted() {
		_ = unix.Kill(pid, unix.SIGKILL) // of another user: not ours to kill
		_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
	}
}

// adopted lists the children of this process that it has not started: neither guardians, nor other processes of this package, nor those
// of its own session, where what it starts by other means is.
func adopted() []int {
	session, _ := unix.Getsid(0)
	if !startMu.TryLock() { // an exec may hang; the next look finds them
		return nil
	}
	defer startMu.Unlock()
	return slices.DeleteFunc(children(), func(pid int) bool {
		_, mine := ownChildren.Load(pid)
		of, err := unix.Getsid(pid)
		return mine || err != nil || of == session
	})
}
