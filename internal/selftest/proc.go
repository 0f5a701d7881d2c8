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
func (ps *processes) start(name, role string, args ...string) (*proc, error) {
	return ps.startIn(ps.dir, name, role, args...)
}

// startIn starts a role whose database is in another directory.
func (ps *processes) startIn(dir, name, role string, args ...string) (*proc, error) {
	cmd, log, err := ps.command(name, append([]string{RoleCommand, role, dir, name}, args...)...)
	if err != nil {
		return nil, err
	}
	if role == boundName {
		ownMounts(cmd)
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if ps.stopped {
		log.Close()
		return nil, errors.New("the play is over")
	}
	p := &proc{processes: ps, cmd: cmd, log: log, done: make(chan struct{}), born: monotonic()}
	if info, err := log.Stat(); err == nil {
		p.logFrom = info.Size()
	}
	if err := ps.spawner.start(cmd); err != nil {
		log.Close()
		return nil, err
	}
	p.pid = cmd.Process.Pid
	ps.alive[p] = true
	ps.goroutines.Go(func() {
		p.err = cmd.Wait()
		log.Close()
		ps.mu.Lock()
		delete(ps.alive, p)
		end, guardians := p.failure()
		ps.lifetimes = append(ps.lifetimes, lifetime{p.pid, p.born, monotonic(), end, guardians})
		ps.mu.Unlock()
		close(p.done)
	})
	return p, nil
}

// verdict says so when nobody wished for an end, and whether it was for want of guardians; else it is empty.
func (p *proc) failure() (end string, guardians bool) {
	exit, failed := errors.AsType[*exec.ExitError](p.err)
	switch {
	case failed && exit.ExitCode() < 0: // by a signal: somebody sent it
		return "", false
	case !failed && p.terms > 0, failed && exit.ExitCode() == 1 && p.terms > 1: // the second time means at once
		return "", false
	}
	text, _ := os.ReadFile(p.log.Name())
	text = text[min(int(p.logFrom), len(text)):]
	if onServer(p.processes.databaseAddress()) && (p.terms > 0 || !bytes.Contains(text, []byte("msg=ready"))) &&
		(bytes.Contains(text, []byte("no connection to")) || bytes.Contains(text, []byte("the connection was lost during a commit"))) {
		return "", false // who starts or ends while the server is away says so
	}
	last := p.processes.logTail(strings.TrimSuffix(filepath.Base(p.log.Name()), ".log"))
	guardians = bytes.Contains(text, []byte("start the guardian: it sent no hello")) ||
		bytes.Contains(text, []byte("guardians in a row died before they had started a command"))
	return fmt.Sprintf("%s (pid %d) ended by itself: %v: %s", strings.TrimSuffix(filepath.Base(p.log.Name()), ".log"), p.pid, p.err, last), guardians
}

func (p *proc) kill() { _ = kill(p.pid) }

func (p *proc) wait() error { <-p.done; return p.err }

func (p *proc) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// tail is the end of what somebody has said.
func (ps *processes) logTail(name string) []byte {
	text, _ := os.ReadFile(ps.log(name))
	return bytes.TrimSpace(text[max(0, len(text)-300):])
}
