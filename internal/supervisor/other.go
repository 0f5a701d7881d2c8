//go:build !linux

package supervisor

import (
	"errors"
	"os"
	"sync/atomic"
	"time"
)

// Guard returns false: only Linux has guardian processes.
func Guard(string) bool { return false }

// Guardian replaces the guardian process of Linux and starts commands directly. The commands of a killed worker continue to run. Their
// records stay in the lock file of the worker, so other workers know that these commands may still run.
type Guardian struct {
	lock   *Lock
	slot   int
	served atomic.Bool
}

// StartGuardian starts no process. The Guardian that it returns starts commands directly.
func StartGuardian(o GuardianOptions) (*Guardian, error) {
	return &Guardian{lock: o.Lock, slot: o.Slot}, nil
}

// Start calls the function Start. It ignores the deadline.
func (g *Guardian) Start(c Command, k Key, _ time.Time) (*Child, error) {
	if c.Resources != (Resources{}) {
		return nil, &ResourceError{"resources", errors.ErrUnsupported}
	}
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
	child := &Child{Process: p, g: g, ended: make(chan struct{})}
	go func() {
		defer close(child.ended)
		child.exit, child.err = p.Wait()
	}()
	return child, nil
}

// Renew does nothing, because there are no deadlines.
func (g *Guardian) Renew([]Key, time.Time) {}

// Pid returns the id of this process, because there is no guardian process.
func (g *Guardian) Pid() int { return os.Getpid() }

// Done returns a channel that is never closed, because there is no guardian process that could end.
func (g *Guardian) Done() <-chan struct{} { return nil }

// Idle returns true, because this process can always start a command.
func (g *Guardian) Idle() bool { return true }

// Served reports whether a command was started.
func (g *Guardian) Served() bool { return g.served.Load() }

// EndExpected returns true, because there is no guardian process that could end unexpectedly.
func (g *Guardian) EndExpected() bool { return true }

// Close clears the record of the guardian. The caller has waited for each command.
func (g *Guardian) Close() error {
	if g.lock == nil {
		return nil
	}
	return g.lock.setRecord(g.slot, Key{})
}

// Child is a command that was started.
type Child struct {
	*Process
	g     *Guardian
	ended chan struct{} // closed when exit and err are set
	exit  Exit
	err   error
}

// Guardian returns the Guardian that started the command.
func (c *Child) Guardian() *Guardian { return c.g }

// Ended returns a channel that is closed when the command has ended.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// Wait waits until the command has ended, and returns how its leader ended.
func (c *Child) Wait() (Exit, error) {
	<-c.ended
	return c.exit, c.err
}

// Dedicate does nothing on this system.
func Dedicate() error { return nil }

// Deaths returns a channel that never receives on this system.
func Deaths() (deaths <-chan os.Signal, stop func()) { return nil, func() {} }

// ReapAdopted does nothing on this system.
func ReapAdopted() {}

// Sweep returns false: on this system it can't tell whether processes remain.
func Sweep(string, []Key, string) bool { return false }

// FindMarked returns nil: this system doesn't show the environment of a process.
func FindMarked() []MarkedProcess { return nil }

func ownCgroup() string   { return "" }
func removeCgroup(string) {}

// ResumeGuardians returns false: this system has no guardians.
func ResumeGuardians(string, int) bool { return false }

// SinceBoot returns 0: this system has no clock that counts the time in suspend.
func SinceBoot() time.Duration { return 0 }
