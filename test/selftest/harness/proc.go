package harness

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// lifetime records a process that has ended.
type lifetime struct {
	pid            int
	started, ended int64  // monotonic clock in µs; ended is the time at which the parent of the process noticed the end
	failure        string // why a defect of runner may have ended the process; empty if another cause ended it
	// whether the process ended because its guardians died: a violation, unless
	// the nemesis or a task killed them
	noGuardians bool
}

// proc is a process that the harness started.
type proc struct {
	processes *processes
	cmd       *exec.Cmd
	pid       int
	started   int64
	done      chan struct{}
	err       error
	log       *os.File
	terms     int   // number of SIGTERMs that the harness sent to this process
	logFrom   int64 // offset of the first line of this process in the log
}

// start starts a process with a role.
func (ps *processes) start(name, role string, args ...string) (*proc, error) {
	return ps.startIn(ps.dir, name, role, args...)
}

// startIn starts a process with a role and a database in another directory.
func (ps *processes) startIn(dir, name, role string, args ...string) (*proc, error) {
	cmd, log, err := ps.command(ps.self, name, append([]string{RoleCommand, role, dir, name}, args...)...)
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
		return nil, errors.New("the run is over")
	}

	p := &proc{processes: ps, cmd: cmd, log: log, done: make(chan struct{}), started: monotonic()}
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
		failure, noGuardians := p.failure()
		ps.lifetimes = append(ps.lifetimes, lifetime{p.pid, p.started, monotonic(), failure, noGuardians})
		ps.mu.Unlock()
		close(p.done)
	})
	return p, nil
}

// failure explains why a defect of runner may have ended the process; empty for
// another cause. noGuardians tells that its guardians didn't start, or died.
func (p *proc) failure() (text string, noGuardians bool) {
	exit, failed := errors.AsType[*exec.ExitError](p.err)
	switch {
	case failed && exit.ExitCode() < 0: // a signal shows no defect of runner, because only the harness sends signals to p
		return "", false
	// After one SIGTERM a process exits with status 0. After a second SIGTERM a
	// worker exits at once and may have status 1.
	case !failed && p.terms > 0, failed && exit.ExitCode() == 1 && p.terms > 1:
		return "", false
	}

	log, _ := os.ReadFile(p.log.Name())
	log = log[min(int(p.logFrom), len(log)):]
	if onServer(p.processes.databaseAddress()) && (p.terms > 0 || !bytes.Contains(log, []byte("msg="+readyText))) &&
		(bytes.Contains(log, []byte(noServerText)) || bytes.Contains(log, []byte(lostCommitText))) {
		// This is no failure: if the server is down while a process starts or
		// stops, the process must report the lost connection and exit.
		return "", false
	}

	name := strings.TrimSuffix(filepath.Base(p.log.Name()), ".log")
	noGuardians = bytes.Contains(log, []byte(noGuardianText)) ||
		bytes.Contains(log, []byte(guardiansText))
	return fmt.Sprintf("%s (process %d) exited by itself: %v: %s", name, p.pid, p.err, p.processes.logTail(name)), noGuardians
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

// logTail returns the end of a log.
func (ps *processes) logTail(name string) []byte {
	text, _ := os.ReadFile(ps.logFile(name))
	return bytes.TrimSpace(text[max(0, len(text)-300):])
}
