package supervisor

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Child is a command that a guardian started. Its methods are safe for use by many goroutines.
type Child struct {
	g      *Guardian
	key    Key
	pid    int
	answer chan reply    // receives the guardian's reply to the request to start; has space for two replies
	ended  chan struct{} // closed when exit and err are set
	exit   Exit
	err    error
}

// Start works like the function Start, but the command is a child of the guardian. The guardian kills the command at the deadline, unless
// Renew moves the deadline. It also kills the command when this process ends. The key has the two numbers that the command finds in its
// environment as RUNNER_TASK_ID and RUNNER_TASK_GENERATION. A guardian runs one command at a time.
//
// If ctx ends during the start, the command is not started, or it is terminated after its start.
//
// Start returns the errors of the function Start, and three more. ErrGone means that the guardian is gone. ErrRefused means that the
// command was certainly not started. ErrLost means that the guardian died during the start.
func (g *Guardian) Start(ctx context.Context, c Command, k Key, deadline time.Time) (*Child, error) {
	if len(c.Argv) == 0 {
		return nil, &os.PathError{Op: "start", Path: c.Path, Err: unix.EINVAL}
	}
	dir := c.Dir
	if !filepath.IsAbs(dir) { // the guardian would resolve a relative path in its own working directory, which is /
		here, err := os.Getwd()
		if err != nil {
			return nil, &DirError{Dir: ".", Err: err}
		}
		dir = filepath.Join(here, dir)
	}
	words := strings.Join(slices.Concat([]string{c.Path, dir}, c.Argv, c.Env), "\x00")
	if strings.Count(words, "\x00") != 1+len(c.Argv)+len(c.Env) { // a part of the command contains NUL
		return nil, &os.PathError{Op: "start", Path: c.Path, Err: unix.EINVAL}
	}
	if err := g.options.Lock.prepareLimits(c.Resources); err != nil {
		return nil, err
	}
	files, null, err := c.files()
	if err != nil {
		return nil, err
	}
	defer null.Close()
	child := &Child{g: g, key: k, answer: make(chan reply, 2), ended: make(chan struct{})}
	if err := g.addChild(child); err != nil {
		return nil, err
	}
	if c.LeaveChildren {
		hasLeft.Store(true)
	}
	err = g.send(request{Op: opStart, Key: k, Words: []byte(words), Args: len(c.Argv), Deadline: clockAt(deadline), Leave: c.LeaveChildren,
		Resources: c.Resources}, unix.UnixRights(int(files[0].Fd()), int(files[1].Fd()), int(files[2].Fd())))
	if err != nil { // the guardian has not read the whole message, so it starts no command
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
		return fmt.Errorf("%w: the guardian has another command", ErrRefused)
	}
	g.child = c
	return nil
}

// dropChild removes a command that the guardian did not receive.
func (g *Guardian) dropChild(c *Child) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.child == c {
		g.child = nil
	}
}

// awaitStart waits for the reply to the start. If ctx ends first, the command is terminated, even if the reply arrives
// at the same moment.
func (c *Child) awaitStart(ctx context.Context, cmd *Command) (*Child, error) {
	// The errors need no handling: Terminate and Kill fail if the guardian is gone, and then the command is dead.
	stop := context.AfterFunc(ctx, func() {
		if cmd.KillAfter > 0 {
			_ = c.Terminate()
			time.AfterFunc(cmd.KillAfter, func() { _ = c.Kill() })
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
	case r.Errno != 0:
		return nil, &ResourceError{r.Reason, unix.Errno(r.Errno)}
	default:
		return nil, fmt.Errorf("%w: %s", ErrRefused, r.Reason)
	}
}

// deliver passes the reply to awaitStart. It returns false if the guardian has replied too often, so that the buffer is
// full.
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

// Terminate asks the command to end, as Process.Terminate does. Only the first call has an effect.
func (c *Child) Terminate() error {
	return c.g.send(request{Op: opKill, Key: c.key, Signal: int(unix.SIGTERM)}, nil)
}

// Kill kills all processes of the command. It does not wait.
func (c *Child) Kill() error {
	return c.g.send(request{Op: opKill, Key: c.key, Signal: int(unix.SIGKILL)}, nil)
}

// Ended returns a channel that is closed when the command has ended; Wait then returns at once.
func (c *Child) Ended() <-chan struct{} { return c.ended }

// Wait waits until no process of the command is left, except those that LeaveChildren allows, and returns how its
// leader ended. The error is ErrDeadline if the guardian killed the command at its deadline, and ErrLost if the command
// died with its guardian.
func (c *Child) Wait() (Exit, error) {
	<-c.ended
	return c.exit, c.err
}
