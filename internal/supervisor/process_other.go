//go:build unix && !linux

package supervisor

import (
	"os"

	"golang.org/x/sys/unix"
)

func setCloseOnExec() { setListedCloseOnExec() }

// kill kills the process group only, because without /proc it cannot find the rest of the session. macOS returns EPERM
// if only zombies are left of the group.
func (p *Process) kill() error { return signalGroup(p.pid, unix.SIGKILL) }

// wait reaps the leader and kills its process group directly afterwards. It cannot leave the leader a zombie, because
// x/sys has no waitid for this system.
//
// While a member of the group lives, the kernel gives the id of the group to no new process. So the signal reaches
// either the left-over processes or no process. One exception remains: the group is empty, and a new process takes its
// id and becomes a group leader in the microseconds between the two calls. A Kill or Terminate at the same moment has
// the same limit.
func (p *Process) wait() (*os.ProcessState, int, error) {
	state, err := p.proc.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	ownChildren.Delete(p.pid)
	if err != nil { // other code has reaped the child at an unknown time
		return nil, 0, err
	}
	if unix.Kill(-p.pid, unix.SIGKILL) != nil {
		return state, 0, nil
	}
	return state, 1, nil // the group had at least one member
}
