package process

import (
	"os"
	"strconv"
	"time"

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

// BuryAdopted waits for dead children that this process did not start: it has them as a subreaper, or as the first process of a
// container. It never blocks.
func BuryAdopted() {
	for _, pid := range adopted() {
		if !running(pid) {
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

// killAdopted kills what a dead guardian has left to this process, until there is none or a second is over.
func killAdopted() {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(time.Millisecond) {
		pids := adopted()
		if len(pids) == 0 {
			return
		}
		for _, pid := range pids {
			_ = unix.Kill(pid, unix.SIGKILL) // of another user: not ours to kill
			_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
		}
	}
}

// adopted lists the children of this process that are neither guardians nor of its own session: each command has a session, and
// what this process may start by other means is in its own.
func adopted() []int {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil
	}
	session, _ := unix.Getsid(0)
	var pids []int
	for _, thread := range threads {
		tid, err := strconv.Atoi(thread.Name())
		if err != nil {
			continue
		}
		for _, pid := range childrenOf(tid) {
			if _, mine := guardians.Load(pid); mine {
				continue
			}
			if of, err := unix.Getsid(pid); err == nil && of != session {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}
