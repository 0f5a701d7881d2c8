package selftest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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

// life is what is known of a process that has ended.
type lifetime struct {
	pid            int
	started, ended int64  // monotonic µs; buried: its end was noticed
	failure        string // why that was a fault; empty: it was none
	noGuardians    bool   // it ended because its guardians did, which is a fault unless somebody killed them
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
	cmd.Env = append(cmd.Env, "RUNNER_DB="+c.database())
	if n := hostOf(log); n > 0 && onServer(c.database()) {
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
	if onServer(a.processes.database()) && (a.terms > 0 || !bytes.Contains(text, []byte("msg=ready"))) &&
		(bytes.Contains(text, []byte("no connection to")) || bytes.Contains(text, []byte("the connection was lost during a commit"))) {
		return "", false // who starts or ends while the server is away says so
	}
	last := a.processes.logTail(strings.TrimSuffix(filepath.Base(a.log.Name()), ".log"))
	guardians = bytes.Contains(text, []byte("start the guardian: it said no hello")) ||
		bytes.Contains(text, []byte("guardians in a row died before they had started a command"))
	return fmt.Sprintf("%s (pid %d) ended by itself: %v: %s", strings.TrimSuffix(filepath.Base(a.log.Name()), ".log"), a.pid, a.err, last), guardians
}

// tail is the end of what somebody has said.
func (c *processes) logTail(name string) []byte {
	text, _ := os.ReadFile(c.log(name))
	return bytes.TrimSpace(text[max(0, len(text)-300):])
}

func (a *proc) kill()       { _ = kill(a.pid) }
func (a *proc) wait() error { <-a.done; return a.err }
func (a *proc) ended() bool {
	select {
	case <-a.done:
		return true
	default:
		return false
	}
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

const (
	copyEvery = 10 * time.Second
	forgetAge = "10s" // of finished tasks that are deleted
)

// look is what people and monitoring do meanwhile, by the command line: whatever it is, the database must not be busy for it.
func (c *processes) runReader(p *slot) {
	lines := [][]string{{"list", "--json", "-n", "50"}, {"status", "--json"}, {"doctor", "--quiet"}, {"logs", "--json", "-q", "a", "--since", "2s"},
		{"list", "-s", "failed", "-n", "20"}, {"delete", "--older-than", forgetAge, "--yes"}}
	copied := time.Now()
	for i := 0; ; i++ {
		line := lines[i%len(lines)]
		if time.Since(copied) > copyEvery && len(c.addresses()) == 1 { // a server's backups are its own
			copied, line = time.Now(), []string{"backup", "--force", c.dir + "/backup.db"}
		}
		c.mu.Lock()
		over := p.stopped || c.stopped
		c.mu.Unlock()
		if over {
			return
		}
		cmd, log, err := c.command(p.name, line...)
		if err == nil {
			err = c.spawner.start(cmd)
			if err == nil {
				c.setReaderPID(cmd.Process.Pid)
				err = cmd.Wait()
				c.setReaderPID(0)
			}
			log.Close()
		}
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			said := c.logTail(p.name)
			switch code := exit.ExitCode(); {
			case code == 75 && bytes.Contains(said, []byte("database is busy")): // a full disk ends with 75, too
				c.notes.add(opBusy, 0, 0, cmd.Args[1])
			case code == 2: // a look that looks at nothing
				c.mu.Lock()
				c.lifetimes = append(c.lifetimes, lifetime{failure: fmt.Sprintf("%q is refused: %s", line, said)})
				c.mu.Unlock()
			}
		}
		time.Sleep(300 * time.Millisecond)
	}
}

func (c *processes) setReaderPID(pid int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.readerPID = pid
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
