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

func newProcesses(s workspace, path, name string, notes *notesFile) *processes {
	return &processes{workspace: s, path: path, name: name, notes: notes, spawner: newSpawner(), alive: map[*proc]bool{}}
}

// command is the program with arguments, its talk going to a log of that name.
func (c *processes) command(log string, args ...string) (*exec.Cmd, *os.File, error) {
	file, err := os.OpenFile(c.log(log), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, nil, err
	}
	cmd := exec.Command(c.path)
	cmd.Args = append([]string{c.name}, args...)
	cmd.Dir, cmd.Stderr = c.dir, file
	cmd.Env = slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, "RUNNER_") })
	cmd.Env = append(cmd.Env, "RUNNER_DB="+c.databaseAddress())
	if n := hostOf(log); n > 0 && onServer(c.databaseAddress()) {
		cmd.Env = append(cmd.Env, c.host(n)...)
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
func (c *processes) runCommand(ctx context.Context, args ...string) error {
	cmd, log, err := c.command("call", args...)
	if err != nil {
		return err
	}
	defer log.Close()
	if err := c.spawner.start(cmd); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })()
	if err := cmd.Wait(); err != nil {
		text, _ := os.ReadFile(c.log("call"))
		return fmt.Errorf("%s %s: %w: %s", c.name, args[0], err, bytes.TrimSpace(text))
	}
	return nil
}

// raise fills all parts.
func (c *processes) startAll(seed uint64) {
	for i := range workers {
		name, kind := fmt.Sprintf("worker%d", i+1), "commands"
		if i == workers-1 {
			kind = "functions"
		}
		c.keepRunning(&slot{role: workerRole, name: name, start: func() (*proc, error) { return c.start(name, "worker", kind) }})
	}
	for i := range enqueuers {
		name := fmt.Sprintf("enqueuer%d", i+1)
		c.keepRunning(&slot{role: enqueuerRole, name: name, start: func() (*proc, error) {
			return c.start(name, "enqueue", strconv.FormatUint(seed+uint64(i), 10), "8")
		}})
	}
	c.keepRunning(&slot{role: enqueuerRole, name: "sql", start: func() (*proc, error) { return c.start("sql", "sql", strconv.FormatUint(seed, 10), "20") }})
	c.keepRunning(&slot{role: browserRole, name: "browser", start: func() (*proc, error) { return c.start("browser", "browse") }})
	c.keepRunning(&slot{role: readerRole, name: "reader"})
}

// play keeps a part filled.
func (c *processes) keepRunning(p *slot) {
	c.mu.Lock()
	c.slots = append(c.slots, p)
	c.mu.Unlock()
	if p.role == readerRole {
		c.goroutines.Go(func() { c.runReader(p) })
		return
	}
	c.goroutines.Go(func() {
		for {
			c.mu.Lock()
			over := p.stopped
			c.mu.Unlock()
			if over {
				return
			}
			a, err := p.start()
			if err != nil {
				time.Sleep(100 * time.Millisecond)
				continue
			}
			c.mu.Lock()
			p.proc = a
			if p.stopped { // dismissed meanwhile
				a.terms++
				_ = terminate(a.pid)
			}
			c.mu.Unlock()
			<-a.done
			time.Sleep(20 * time.Millisecond)
		}
	})
}

// everybody lists the processes of the run that live, but for guardians and commands.
func (c *processes) allPIDs() (pids []int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for a := range c.alive {
		pids = append(pids, a.pid)
	}
	if c.readerPID != 0 {
		pids = append(pids, c.readerPID)
	}
	return pids
}

// actors returns who plays a role now.
func (c *processes) running(of role) []*proc {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []*proc
	for _, p := range c.slots {
		if p.role == of && p.proc != nil && !p.proc.ended() {
			list = append(list, p.proc)
		}
	}
	return list
}

// pids are the workers that live.
func (c *processes) workerPIDs() []int {
	var list []int
	for _, a := range c.running(workerRole) {
		list = append(list, a.pid)
	}
	return list
}

// tell tells a worker to end.
func (c *processes) terminate(a *proc) {
	c.mu.Lock()
	defer c.mu.Unlock()
	a.terms++
	_ = terminate(a.pid) // it may be dead
}

// dismiss ends a role: workers drain, enqueuers end.
func (c *processes) stopRole(of role) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.slots {
		if p.role == of {
			p.stopped = true
			if p.proc != nil && !p.proc.ended() {
				p.proc.terms++
				_ = terminate(p.proc.pid)
			}
		}
	}
}

// end dismisses everybody and waits. Who does not end in time is killed, and remembered.
func (c *processes) stopAll(within time.Duration) {
	for _, r := range []role{workerRole, enqueuerRole, browserRole, readerRole} {
		c.stopRole(r)
	}
	over := make(chan struct{})
	go func() { c.goroutines.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(within):
		c.mu.Lock()
		for a := range c.alive {
			c.lifetimes = append(c.lifetimes, lifetime{pid: a.pid, failure: fmt.Sprintf("pid %d did not end within %v of TERM", a.pid, within)})
		}
		c.mu.Unlock()
		c.killAll()
	}
}

func (c *processes) killAll() {
	c.mu.Lock()
	c.stopped = true
	for _, p := range c.slots {
		p.stopped = true
	}
	for a := range c.alive {
		_ = kill(a.pid)
	}
	c.mu.Unlock()
	c.goroutines.Wait()
}
