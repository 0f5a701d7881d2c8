package supervisor

import (
	"errors"
	"math"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// killTimeout is how long Wait watches killed left-overs go.
const killTimeout = time.Second

// setCloseOnExec sets all descriptors above 2 to close on exec. Go opens its own that way, but what this process
// inherited, or was handed by other code, would reach the command.
func setCloseOnExec() {
	if unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) != nil { // before Linux 5.11, or filtered
		setListedCloseOnExec()
	}
}

// wait looks at the end of the leader without reaping it, kills the rest of the session while the zombie holds the
// pid, and reaps then.
func (p *Process) wait() (*os.ProcessState, int, error) {
	if err := awaitExit(p.pid); err != nil { // reaped by someone else: the pid may be anybody's
		p.mu.Lock()
		defer p.mu.Unlock()
		p.ended = true
		ownChildren.Delete(p.pid)
		return nil, 0, errors.Join(os.NewSyscallError("waitid", err), p.proc.Release())
	}
	leftOver := killSession(p.pid)
	state, err := p.release()
	return state, leftOver, err
}

// awaitExit blocks until the child pid has ended and leaves it a zombie. WEXITED alone: being stopped is not an end.
func awaitExit(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err
		}
	}
}

// kill kills the group in one step, then the members of the session that left the group.
func (p *Process) kill() error {
	failed := signalGroup(p.pid, unix.SIGKILL)
	for _, pid := range sessionMembers(p.pid) {
		if err := killMember(pid, p.pid); err != nil && err != unix.ESRCH && failed == nil {
			failed = os.NewSyscallError("kill", err)
		}
	}
	return failed
}

// sweep kills all of the session sid but its leader, which is a zombie, and returns how many were alive. A member may
// fork after the look at /proc, so it goes on until a look finds none alive.
func killSession(sid int) int {
	seen := map[int]bool{}
	end := time.Now().Add(killTimeout)
	for pause := time.Millisecond; ; pause = min(2*pause, 20*time.Millisecond) {
		alive := false
		for _, pid := range sessionMembers(sid) {
			living := running(pid)
			if err := killMember(pid, sid); err == nil && living {
				alive = true
				seen[pid] = true
			}
		}
		// After the count, for what was forked behind the back of the look. Its error would be that of a member above.
		_ = signalGroup(sid, unix.SIGKILL)
		if !alive || time.Now().After(end) {
			return len(seen)
		}
		time.Sleep(pause)
	}
}

// sessionMembers returns the processes of the session sid without its leader, and none if /proc cannot be read. It asks
// getsid for each process, because reading its stat costs forty times as much.
func sessionMembers(sid int) []int {
	return slices.DeleteFunc(processes(), func(pid int) bool {
		s, err := unix.Getsid(pid)
		return pid == sid || err != nil || s != sid
	})
}

// killMember kills pid if it is still in the session sid, else returns ESRCH.
func killMember(pid, sid int) error {
	return killIf(pid, func() bool {
		s, err := unix.Getsid(pid)
		return err == nil && s == sid
	})
}
