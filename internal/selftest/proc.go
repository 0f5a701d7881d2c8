package selftest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// life is what is known of a process that has ended.
type lifetime struct {
	pid            int
	started, ended int64  // monotonic µs; buried: its end was noticed
	failure        string // why that was a fault; empty: it was none
	noGuardians    bool   // it ended because its guardians did, which is a fault unless somebody killed them
}

// actor is a process.
type proc struct {
	processes *processes
	cmd       *exec.Cmd
	pid       int
	born      int64
	done      chan struct{}
	err       error
	log       *os.File
	terms     int   // to end, so often
	logFrom   int64 // where its talk begins in the log
}

// start starts a role.
func (c *processes) start(name, role string, args ...string) (*proc, error) {
	return c.startIn(c.dir, name, role, args...)
}

// startIn starts a role whose database is in another directory.
func (c *processes) startIn(dir, name, role string, args ...string) (*proc, error) {
	cmd, log, err := c.command(name, append([]string{RoleCommand, role, dir, name}, args...)...)
	if err != nil {
		return nil, err
	}
	if role == boundName {
		ownMounts(cmd)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stopped {
		log.Close()
		return nil, errors.New("the play is over")
	}
	a := &proc{processes: c, cmd: cmd, log: log, done: make(chan struct{}), born: monotonic()}
	if info, err := log.Stat(); err == nil {
		a.logFrom = info.Size()
	}
	if err := c.spawner.start(cmd); err != nil {
		log.Close()
		return nil, err
	}
	a.pid = cmd.Process.Pid
	c.alive[a] = true
	c.goroutines.Go(func() {
		a.err = cmd.Wait()
		log.Close()
		c.mu.Lock()
		delete(c.alive, a)
		end, guardians := a.failure()
		c.lifetimes = append(c.lifetimes, lifetime{a.pid, a.born, monotonic(), end, guardians})
		c.mu.Unlock()
		close(a.done)
	})
	return a, nil
}

// verdict says so when nobody wished for an end, and whether it was for want of guardians; else it is empty.
func (a *proc) failure() (end string, guardians bool) {
	exit, failed := errors.AsType[*exec.ExitError](a.err)
	switch {
	case failed && exit.ExitCode() < 0: // by a signal: somebody sent it
		return "", false
	case !failed && a.terms > 0, failed && exit.ExitCode() == 1 && a.terms > 1: // the second time means at once
		return "", false
	}
	text, _ := os.ReadFile(a.log.Name())
	text = text[min(int(a.logFrom), len(text)):]
	if onServer(a.processes.databaseAddress()) && (a.terms > 0 || !bytes.Contains(text, []byte("msg=ready"))) &&
		(bytes.Contains(text, []byte("no connection to")) || bytes.Contains(text, []byte("the connection was lost during a commit"))) {
		return "", false // who starts or ends while the server is away says so
	}
	last := a.processes.logTail(strings.TrimSuffix(filepath.Base(a.log.Name()), ".log"))
	guardians = bytes.Contains(text, []byte("start the guardian: it said no hello")) ||
		bytes.Contains(text, []byte("guardians in a row died before they had started a command"))
	return fmt.Sprintf("%s (pid %d) ended by itself: %v: %s", strings.TrimSuffix(filepath.Base(a.log.Name()), ".log"), a.pid, a.err, last), guardians
}

func (a *proc) kill() { _ = kill(a.pid) }

func (a *proc) wait() error { <-a.done; return a.err }

func (a *proc) ended() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// tail is the end of what somebody has said.
func (c *processes) logTail(name string) []byte {
	text, _ := os.ReadFile(c.log(name))
	return bytes.TrimSpace(text[max(0, len(text)-300):])
}
