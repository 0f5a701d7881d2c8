package harness

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

// processes starts and supervises the processes of a run. It restarts each
// process that dies, until the role of that process is stopped.
type processes struct {
	workspace
	runner, self string // paths of programs; see Options
	notes        *notesFile
	spawner      *spawner

	mu         sync.Mutex
	slots      []*slot
	alive      map[*proc]bool // processes that are running now
	readerPID  int            // pid of the command that runReader runs now; 0 if there is none
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

// slot is a place for one process. If the process ends, another one starts in
// its place.
type slot struct {
	role    role
	name    string
	start   func() (*proc, error)
	proc    *proc
	stopped bool
}

func newProcesses(w workspace, o Options, notes *notesFile) *processes {
	return &processes{workspace: w, runner: o.Runner, self: o.Self, notes: notes, spawner: newSpawner(), alive: map[*proc]bool{}}
}

// command prepares a program with the given arguments. The program appends its
// standard error to the file of the given log.
func (ps *processes) command(program, log string, args ...string) (*exec.Cmd, *os.File, error) {
	file, err := os.OpenFile(ps.logFile(log), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, err
	}

	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Stderr = ps.dir, file
	cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "RUNNER_") })
	cmd.Env = append(cmd.Env, "RUNNER_DB="+ps.databaseAddress())
	if n := hostOf(log); n > 0 && onServer(ps.databaseAddress()) {
		cmd.Env = append(cmd.Env, ps.host(n)...)
	}

	return cmd, file, nil
}

// hostOf returns the number of the simulated host of a process. The first host
// has the number 1. Processes whose names end in a digit are spread over all
// hosts.
func hostOf(name string) int {
	if last := name[len(name)-1]; '0' <= last && last <= '9' {
		return int(last-'0')%hosts + 1
	}
	return 1
}

// runCommand runs a command line of runner and returns an error if it fails.
func (ps *processes) runCommand(ctx context.Context, args ...string) error {
	cmd, log, err := ps.command(ps.runner, "call", args...)
	if err != nil {
		return err
	}
	defer log.Close()

	if err := ps.spawner.start(cmd); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })()

	if err := cmd.Wait(); err != nil {
		text, _ := os.ReadFile(ps.logFile("call"))
		return fmt.Errorf("runner %s: %w: %s", args[0], err, bytes.TrimSpace(text))
	}

	return nil
}

// startAll starts a process in each slot.
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

	ps.keepRunning(&slot{role: enqueuerRole, name: "sql", start: func() (*proc, error) {
		return ps.start("sql", "sql", strconv.FormatUint(seed, 10), "20")
	}})
	ps.keepRunning(&slot{role: browserRole, name: "browser", start: func() (*proc, error) { return ps.start("browser", "browse") }})
	ps.keepRunning(&slot{role: readerRole, name: "reader"})
}

// keepRunning starts the process of a slot, and starts it again each time it
// ends.
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
			if s.stopped { // the role was stopped while this process started
				p.terms++
				_ = terminate(p.pid)
			}

			ps.mu.Unlock()
			<-p.done
			time.Sleep(20 * time.Millisecond)
		}
	})
}

// allPIDs lists the running processes that the harness started itself. It omits
// guardians and commands, which the workers start.
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

// running lists the running processes of a role.
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

// workerPIDs lists the pids of the running workers.
func (ps *processes) workerPIDs() []int {
	var list []int
	for _, p := range ps.running(workerRole) {
		list = append(list, p.pid)
	}
	return list
}

// terminate sends SIGTERM to a process and counts the signal.
func (ps *processes) terminate(p *proc) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	p.terms++
	_ = terminate(p.pid) // the process may be dead already
}

// stopRole stops all processes of a role with SIGTERM and doesn't start them
// again.
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

// stopAll stops all roles and waits until their processes have exited. It kills
// a process that doesn't exit in time and records that as a failure.
func (ps *processes) stopAll(within time.Duration) {
	for _, r := range []role{workerRole, enqueuerRole, browserRole, readerRole} {
		ps.stopRole(r)
	}

	done := make(chan struct{})
	go func() { ps.goroutines.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(within):
		ps.mu.Lock()
		for p := range ps.alive {
			failure := fmt.Sprintf("process %d did not exit within %v of SIGTERM", p.pid, within)
			ps.lifetimes = append(ps.lifetimes, lifetime{pid: p.pid, failure: failure})
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
