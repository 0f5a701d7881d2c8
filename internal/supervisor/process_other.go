//go:build unix && !linux

package supervisor

import (
	"os"

	"golang.org/x/sys/unix"
)

func setCloseOnExec() { setListedCloseOnExec() }

// kill reaches the group only: without /proc the rest of the session is not found. macOS answers EPERM also when
// nothing but zombies is left of the group.
func (p *Process) kill() error { return signalGroup(p.pid, unix.SIGKILL) }

// wait reaps the leader and kills its group directly afterwards: x/sys has no waitid here that would leave a zombie.
// While a member of the group lives, the kernel gives its number to no new process, so the signal reaches either the
// left-overs or nobody; the exception is an empty group whose number is taken by a new process, which also makes
// itself the leader of a group, in the microseconds between these two calls. A Kill or Terminate in the same moment has
// the same limit.
func (p *Process) wait() (*os.ProcessState, int, error) {
	state, err := p.proc.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	ownChildren.Delete(p.pid)
	if err != nil { // reaped by someone else, nobody knows when
		return nil, 0, err
	}
	if unix.Kill(-p.pid, unix.SIGKILL) != nil {
		return state, 0, nil
	}
	return state, 1, nil // at least one was there
}
