package supervisor

import (
	"errors"
	"math"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// killTimeout is how long Wait waits for killed processes to disappear.
const killTimeout = time.Second

// setCloseOnExec sets all descriptors above 2 to close on exec. Go does so for the files that it opens. But a command
// would inherit descriptors that this process inherited or received from other code.
func setCloseOnExec() {
	if unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) != nil { // before Linux 5.11, or filtered
		setListedCloseOnExec()
	}
}

// wait waits until the leader is a zombie and kills the rest of the session. Then it reaps the leader. Until then the
// kernel does not reuse the pid.
func (p *Process) wait() (*os.ProcessState, int, error) {
	if err := awaitExit(p.pid); err != nil { // other code has reaped the child, so the pid may be reused
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

// awaitExit waits until the child pid has ended and leaves it a zombie. WEXITED excludes children that were only
// stopped.
func awaitExit(pid int) error {
	for {
		err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if err != unix.EINTR {
			return err
		}
	}
}

// kill kills the process group in one step, then the members of the session that left the group.
func (p *Process) kill() error {
	failed := signalGroup(p.pid, unix.SIGKILL)
	for _, pid := range sessionMembers(p.pid) {
		if err := killMember(pid, p.pid); err != nil && !errors.Is(err, unix.ESRCH) && failed == nil {
			failed = os.NewSyscallError("kill", err)
		}
	}
	return failed
}

// killSession kills all members of a session except the leader, which is a zombie. It returns how many were alive. A
// member may fork after /proc was read, so killSession repeats until it finds none alive.
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
		// This kills processes that were forked while /proc was read. An error here would be that of a member above.
		_ = signalGroup(sid, unix.SIGKILL)
		if !alive || time.Now().After(end) {
			return len(seen)
		}
		time.Sleep(pause)
	}
}

// sessionMembers returns the processes of the session without its leader, or none if /proc cannot be read. It calls
// getsid for each process, because reading /proc/PID/stat takes forty times as long.
func sessionMembers(sid int) []int {
	return slices.DeleteFunc(processes(), func(pid int) bool {
		s, err := unix.Getsid(pid)
		return pid == sid || err != nil || s != sid
	})
}

// killMember kills pid if it is still in the session, and returns ESRCH otherwise.
func killMember(pid, sid int) error {
	return killIf(pid, func() bool {
		s, err := unix.Getsid(pid)
		return err == nil && s == sid
	})
}
