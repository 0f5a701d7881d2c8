package supervisor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Child is a command that was started by a guardian. Its methods are safe for use by many goroutines.
type Child struct {
	g      *Guardian
	key    Key
	pid    int
	answer chan reply    // buffered: started or refused
	ended  chan struct{} // closed when exit and err are set
	exit   Exit
	err    error
}

// Start is as the function Start, but the command is the guardian's child: it is killed at deadline unless Renew moves that, and
// with the end of this process. k is the two numbers in its environment (RUNNER_TASK_ID, RUNNER_TASK_GENERATION). If ctx ends
// while it is being started, it is not started, or it is terminated after its start. Besides the errors of Start: ErrGone if there is no guardian any more, ErrRefused if the
// command was surely not started, and ErrLost. A guardian has one command at a time.
func (g *Guardian) Start(ctx context.Context, c Command, k Key, deadline time.Time) (*Child, error) {
	if len(c.Argv) == 0 {
		return nil, &os.PathError{Op: "start", Path: c.Path, Err: unix.EINVAL}
	}
	r := request{Op: opStart, Key: k, Path: c.Path, Argv: c.Argv, Env: c.Env, Dir: c.Dir, Deadline: clockAt(deadline)}
	if !filepath.IsAbs(c.Dir) { // the guardian's own is /
		here, err := os.Getwd()
		if err != nil {
			return nil, &DirError{Dir: ".", Err: err}
		}
		r.Dir = filepath.Join(here, c.Dir)
	}
	var fds []int
	for i, f := range []*os.File{c.Stdin, c.Stdout, c.Stderr} {
		if f == nil { // the guardian has one
			r.Null |= 1 << i
			continue
		}
		fd := f.Fd()
		if fd == ^uintptr(0) {
			return nil, &os.PathError{Op: "start", Path: f.Name(), Err: os.ErrClosed}
		}
		fds = append(fds, int(fd))
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	child := &Child{g: g, key: k, answer: make(chan reply, 2), ended: make(chan struct{})}
	if err := g.addChild(child); err != nil {
		return nil, err
	}
	switch err := g.send(r, rights); {
	case err == unix.E2BIG:
		g.dropChild(child)
		return nil, &os.PathError{Op: "start", Path: c.Path, Err: err}
	case err != nil: // the guardian has not read all of it, and so done nothing
		g.dropChild(child)
		return nil, fmt.Errorf("%w: %w", ErrGone, err)
	}
	return child.awaitStart(ctx, &c)
}

func (g *Guardian) addChild(c *Child) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.gone:
		return ErrGone
	case g.child != nil:
		return fmt.Errorf("%w: the guardian has another one", ErrRefused)
	}
	g.child = c
	return nil
}

// drop takes back a command that the guardian was not told of.
func (g *Guardian) dropChild(c *Child) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.child == c {
		g.child = nil
	}
}

// awaitStart waits for the guardian's answer. The command is terminated if ctx ends before that, even when the answer comes at the same time.
func (c *Child) awaitStart(ctx context.Context, cmd *Command) (*Child, error) {
	stop := context.AfterFunc(ctx, func() { // both fail when the guardian is gone, and the command with it
		if cmd.KillAfter > 0 {
			_ = c.Terminate(cmd.KillAfter)
		} else {
			_ = c.Kill()
		}
	})
	defer stop()
	r := <-c.answer
	switch {
	case r.Op == opStarted, r.Op == opExited && r.Exit != nil:
		c.pid = r.Pid
		return c, nil
	case r.Op == opExited:
		return nil, ErrLost
	case r.Reason == reasonExec:
		return nil, cmd.explain(&os.PathError{Op: "fork/exec", Path: cmd.Path, Err: unix.Errno(r.Errno)})
	default:
		return nil, fmt.Errorf("%w: %s", ErrRefused, r.Reason)
	}
}

// deliver answers whoever waits for the birth; false: that was done before.
func (c *Child) deliver(r reply) bool {
	select {
	case c.answer <- r:
		return true
	default:
		return false
	}
}

// Guardian returns the guardian of the command.
func (c *Child) Guardian() *Guardian { return c.g }

// Pid returns the process id of the leader, which is also the id of its group and session.
func (c *Child) Pid() int { return c.pid }

// Terminate asks the command to end, as Process.Terminate does; after a while, if that is not 0, the guardian kills it. Only the first call counts.
func (c *Child) Terminate(after time.Duration) error {
	return c.g.send(request{Op: opKill, Key: c.key, Signal: int(unix.SIGTERM), After: after.Milliseconds()}, nil)
}

// Kill ends the whole command at once. It does not wait.
func (c *Child) Kill() error {
	return c.g.send(request{Op: opKill, Key: c.key, Signal: int(unix.SIGKILL)}, nil)
}

// Ended is closed when no process of the command is left.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// Wait waits until no process of the command is left, and returns how its leader ended. The error is ErrDeadline if the guardian
// killed it at its deadline, and ErrLost if it died with its guardian.
func (c *Child) Wait() (Exit, error) {
	<-c.ended
	return c.exit, c.err
}
