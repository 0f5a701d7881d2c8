//go:build !linux

package supervisor

import (
	"context"
	"os"
	"sync/atomic"
	"time"
)

// Guard is for Linux: here no process is ever a guardian.
func Guard(string) bool { return false }

// Guardian stands for the guardian process that other systems have: it starts commands directly. A worker that is killed leaves
// them running, and its lock file says so.
type Guardian struct {
	lock   *Lock
	slot   int
	served atomic.Bool
}

// StartGuardian starts nothing.
func StartGuardian(o GuardianOptions) (*Guardian, error) {
	return &Guardian{lock: o.Lock, slot: o.Slot}, nil
}

// Start is the function Start. The deadline is not looked at.
func (g *Guardian) Start(_ context.Context, c Command, k Key, _ time.Time) (*Child, error) {
	if g.lock != nil {
		if err := g.lock.setRecord(g.slot, k); err != nil {
			return nil, err
		}
	}
	p, err := Start(c)
	if err != nil {
		return nil, err
	}
	g.served.Store(true)
	child := &Child{p: p, g: g, ended: make(chan struct{})}
	go func() {
		defer close(child.ended)
		child.exit, child.err = p.Wait()
	}()
	return child, nil
}

// Renew does nothing: there are no deadlines.
func (g *Guardian) Renew([]Key, time.Time) {}

// Ping does nothing.
func (g *Guardian) Ping() {}

// Pid returns this process's own id.
func (g *Guardian) Pid() int { return os.Getpid() }

// Done is never closed.
func (g *Guardian) Done() <-chan struct{} { return nil }

// Idle says that a command can be started.
func (g *Guardian) Idle() bool { return true }

// Served says whether a command was started.
func (g *Guardian) Served() bool { return g.served.Load() }

// EndExpected says nothing: there is no process that could end.
func (g *Guardian) EndExpected() bool { return true }

// Unmarked says nothing: there are no marks.
func (g *Guardian) Unmarked() string { return "" }

// Close says that nothing is left: the caller has waited for each command.
func (g *Guardian) Close() error {
	if g.lock == nil {
		return nil
	}
	return g.lock.setRecord(g.slot, Key{})
}

// Child is a command.
type Child struct {
	p     *Process
	g     *Guardian
	ended chan struct{} // closed when exit and err are set
	exit  Exit
	err   error
}

// Guardian returns what has started the command.
func (c *Child) Guardian() *Guardian { return c.g }

// Pid returns the process id of the leader.
func (c *Child) Pid() int { return c.p.Pid() }

// Terminate asks the command to end. It is not killed by itself afterwards.
func (c *Child) Terminate(time.Duration) error { return c.p.Terminate() }

// Kill ends the whole command at once. It does not wait.
func (c *Child) Kill() error { return c.p.Kill() }

// Ended is closed when the command has ended.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// Wait is that of Process.
func (c *Child) Wait() (Exit, error) {
	<-c.ended
	return c.exit, c.err
}

// Dedicate does nothing.
func Dedicate() error { return nil }

// ReapAdopted does nothing.
func ReapAdopted() {}
