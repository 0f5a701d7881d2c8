//go:build !linux

package process

import (
	"context"
	"os"
	"time"
)

// Guard is for Linux: here no process is ever a guardian.
func Guard(string) bool { return false }

// Guardian stands for the guardian process that other systems have: it starts commands directly. A worker that is killed leaves
// them running, and its lock file says so.
type Guardian struct{ lock *Lock }

// StartGuardian starts nothing.
func StartGuardian(o GuardianOptions) (*Guardian, error) { return &Guardian{o.Lock}, nil }

// Start is the function Start. The key and the deadline are not looked at.
func (g *Guardian) Start(_ context.Context, c Command, _ Key, _ time.Time) (*Child, error) {
	if g.lock != nil {
		if err := g.lock.setMark(Dirty); err != nil {
			return nil, err
		}
	}
	p, err := Start(c)
	if err != nil {
		return nil, err
	}
	return &Child{p}, nil
}

// Renew does nothing: there are no deadlines.
func (g *Guardian) Renew([]Key, time.Time) {}

// Ping does nothing.
func (g *Guardian) Ping() {}

// Pid returns this process's own id.
func (g *Guardian) Pid() int { return os.Getpid() }

// Done is never closed.
func (g *Guardian) Done() <-chan struct{} { return nil }

// Close says that nothing is left: the caller has waited for each command.
func (g *Guardian) Close() error {
	if g.lock == nil {
		return nil
	}
	return g.lock.setMark(Clean)
}

// Child is a command.
type Child struct{ p *Process }

// Pid returns the process id of the leader.
func (c *Child) Pid() int { return c.p.Pid() }

// Terminate asks the command to end. It is not killed by itself afterwards.
func (c *Child) Terminate(time.Duration) error { return c.p.Terminate() }

// Kill ends the whole command at once. It does not wait.
func (c *Child) Kill() error { return c.p.Kill() }

// Wait is that of Process.
func (c *Child) Wait() (Exit, error) { return c.p.Wait() }

// Dedicate does nothing.
func Dedicate() error { return nil }

// BuryAdopted does nothing.
func BuryAdopted() {}
