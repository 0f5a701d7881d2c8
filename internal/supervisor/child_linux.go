package supervisor

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Child is a command that a guardian starts. Its methods are safe for use by
// many goroutines.
type Child struct {
	g     *Guardian
	key   Key
	ended chan struct{} // closed when exit and err are set
	exit  Exit
	err   error
}

// start asks the guardian to start a command; see Guardians.Start. errGone
// means that the guardian is gone.
func (g *Guardian) start(c Command, k Key, deadline time.Time) (*Child, error) {
	words := strings.Join(slices.Concat([]string{c.Path, c.Dir}, c.Argv, c.Env), "\x00")
	hasNUL := strings.Count(words, "\x00") != 1+len(c.Argv)+len(c.Env)
	if len(c.Argv) == 0 || hasNUL {
		return nil, &os.PathError{Op: "start", Path: c.Path, Err: unix.EINVAL}
	}
	if err := g.pool.Lock.prepareLimits(c.Resources); err != nil {
		return nil, err
	}

	files, null, err := c.files()
	if err != nil {
		return nil, err
	}
	defer null.Close()

	child := &Child{g: g, key: k, ended: make(chan struct{})}
	g.pool.mu.Lock()
	gone := g.gone
	if !gone {
		g.child = child
	}
	g.pool.mu.Unlock()
	if gone {
		return nil, errGone
	}
	if c.LeaveChildren {
		hasLeft.Store(true)
	}

	r := request{Op: opStart, Key: k, Words: []byte(words), Args: len(c.Argv), Leave: c.LeaveChildren}
	r.Deadline, r.Resources = clockAt(deadline), c.Resources
	err = g.send(r, unix.UnixRights(int(files[0].Fd()), int(files[1].Fd()), int(files[2].Fd())))
	if err == nil {
		return child, nil
	}

	g.pool.mu.Lock()
	defer g.pool.mu.Unlock()
	if g.child == child { // the guardian hasn't read the whole message, so it starts no command
		g.child = nil
	}
	return nil, fmt.Errorf("%w: %w", errGone, err)
}

// Terminate asks the command to end, as Process.Terminate does. Only the first
// call has an effect.
func (c *Child) Terminate() error { return c.signal(unix.SIGTERM) }

// Kill kills all processes of the command. It doesn't wait.
func (c *Child) Kill() error { return c.signal(unix.SIGKILL) }

func (c *Child) signal(s unix.Signal) error {
	return c.g.send(request{Op: opKill, Key: c.key, Signal: int(s)}, nil)
}

// Ended returns a channel that is closed when the command has ended; Wait then
// returns at once.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// Wait waits until no process of the command is left, except those that
// LeaveChildren allows, and returns how its leader ended. The error is
// ErrDeadline if the guardian killed the command at its deadline, and ErrLost
// if the command died with its guardian. Any other error is one of Start, or
// ErrRefused: the command was certainly not started.
func (c *Child) Wait() (Exit, error) {
	<-c.ended
	return c.exit, c.err
}
