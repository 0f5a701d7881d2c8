package selftest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// cast are the processes of a run. Who dies is replaced, until told otherwise.
type processes struct {
	workspace
	path, name string
	notes      *notesFile
	spawner    *spawner

	mu         sync.Mutex
	slots      []*slot
	alive      map[*proc]bool // alive
	readerPID  int            // the pid of the command line that looks; 0: none does now
	lifetimes  []lifetime
	goroutines sync.WaitGroup
	stopped    bool
}

type role int

const (
	workerRole role = iota
	enqueuerRole
	readerRole
	browserRole
)

// part is a place in the cast, and who plays it.
type slot struct {
	role    role
	name    string
	start   func() (*proc, error)
	proc    *proc
	stopped bool
}

func newProcesses(w workspace, path, name string, notes *notesFile) *processes {
	return &processes{workspace: w, path: path, name: name, notes: notes, spawner: newSpawner(), alive: map[*proc]bool{}}
}

// command is the program with arguments, its talk going to a log of that name.
func (ps *processes) command(log string, args ...string) (*exec.Cmd, *os.File, error) {
	file, err := os.OpenFile(ps.log(log), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(ps.path)
	cmd.Args = append([]string{ps.name}, args...)
	cmd.Dir, cmd.Stderr = ps.dir, file
	cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "RUNNER_") })
	cmd.Env = append(cmd.Env, "RUNNER_DB="+ps.databaseAddress())
	if n := hostOf(log); n > 0 && onServer(ps.databaseAddress()) {
		cmd.Env = append(cmd.Env, ps.host(n)...)
	}
	return cmd, file, nil
}

// hostOf is the host on which somebody of that name plays: those with a number are on all of them in turn.
func hostOf(name string) int {
	if last := name[len(name)-1]; '0' <= last && last <= '9' {
		return int(last-'0')%hosts + 1
	}
	return 1
}

// call runs a command line of the program, which must succeed.
func (ps *processes) runCommand(ctx context.Context, args ...string) error {
	cmd, log, err := ps.command("call", args...)
	if err != nil {
		return err
	}
	defer log.Close()
	if err := ps.spawner.start(cmd); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })()
	if err := cmd.Wait(); err != nil {
		text, _ := os.ReadFile(ps.log("call"))
		return fmt.Errorf("%s %s: %w: %s", ps.name, args[0], err, bytes.TrimSpace(text))
	}
	return nil
}

// raise fills all parts.
func (ps *processes) startAll(seed uint64) {
	for i := range workers {
		name, kind := fmt.Sprintf("worker%d", i+1), "commands"
		if i == workers-1 {
			kind = "functions"
		}
		ps.keepRunning(&slot{role: workerRole, name: name, start: func() (*proc, error) { return ps.start(name, "worker", kind) }})
	}
	for i := range enqueuers {
		name := fmt.Sprintf("enqueuer%d", i+1)
		ps.keepRunning(&slot{role: enqueuerRole, name: name, start: func() (*proc, error) {
			return ps.start(name, "enqueue", strconv.FormatUint(seed+uint64(i), 10), "8")
		}})
	}
	ps.keepRunning(&slot{role: enqueuerRole, name: "sql", start: func() (*proc, error) { return ps.start("sql", "sql", strconv.FormatUint(seed, 10), "20") }})
	ps.keepRunning(&slot{role: browserRole, name: "browser", start: func() (*proc, error) { return ps.start("browser", "browse") }})
	ps.keepRunning(&slot{role: readerRole, name: "reader"})
}

// play keeps a part filled.
func (ps *processes) keepRunning(s *slot) {
	ps.mu.Lock()
	ps.slots = append(ps.slots, s)
	ps.mu.Unlock()
	if s.role == readerRole {
		ps.goroutines.Go(func() { ps.runReader(s) })
		return
	}
	ps.goroutines.Go(func() {
		for {
			ps.mu.Lock()
			stopped := s.stopped
			ps.mu.Unlock()
			if stopped {
				return
			}
			p, err := s.start()
			if err != nil {
				time.Sleep(100 * time.Millisecond)
				continue
			}
			ps.mu.Lock()
			s.proc = p
			if s.stopped { // dismissed meanwhile
				p.terms++
				_ = terminate(p.pid)
			}
			ps.mu.Unlock()
			<-p.done
			time.Sleep(20 * time.Millisecond)
		}
	})
}

// everybody lists the processes of the run that live, but for guardians and commands.
func (ps *processes) allPIDs() (pids []int) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for p := range ps.alive {
		pids = append(pids, p.pid)
	}
	if ps.readerPID != 0 {
		pids = append(pids, ps.readerPID)
	}
	return pids
}

// actors returns who plays a role now.
func (ps *processes) running(of role) []*proc {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	var list []*proc
	for _, s := range ps.slots {
		if s.role == of && s.proc != nil && !s.proc.ended() {
			list = append(list, s.proc)
		}
	}
	return list
}

// pids are the workers that live.
func (ps *processes) workerPIDs() []int {
	var list []int
	for _, p := range ps.running(workerRole) {
		list = append(list, p.pid)
	}
	return list
}

// tell tells a worker to end.
func (ps *processes) terminate(p *proc) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p.terms++
	_ = terminate(p.pid) // it may be dead
}

// dismiss ends a role: workers drain, enqueuers end.
func (ps *processes) stopRole(of role) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for _, s := range ps.slots {
		if s.role == of {
			s.stopped = true
			if s.proc != nil && !s.proc.ended() {
				s.proc.terms++
				_ = terminate(s.proc.pid)
			}
		}
	}
}

// end dismisses everybody and waits. Who does not end in time is killed, and remembered.
func (ps *processes) stopAll(within time.Duration) {
	for _, r := range []role{workerRole, enqueuerRole, browserRole, readerRole} {
		ps.stopRole(r)
	}
	over := make(chan struct{})
	go func() { ps.goroutines.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(within):
		ps.mu.Lock()
		for p := range ps.alive {
			ps.lifetimes = append(ps.lifetimes, lifetime{pid: p.pid, failure: fmt.Sprintf("pid %d did not end within %v of TERM", p.pid, within)})
		}
		ps.mu.Unlock()
		ps.killAll()
	}
}

func (ps *processes) killAll() {
	ps.mu.Lock()
	ps.stopped = true
	for _, s := range ps.slots {
		s.stopped = true
	}
	for p := range ps.alive {
		_ = kill(p.pid)
	}
	ps.mu.Unlock()
	ps.goroutines.Wait()
}
