// Package supervisor starts one command away from its parent's terminal and signals, and stops all of it.
//
// # Problem
//
// A command is more than the process that was started: shells fork, scripts leave something in the background, and a
// signal to the first process reaches none of it. Each command therefore leads a session and a process group of its
// own (on Windows: fills a Job Object of its own), and is signalled as a whole. Its attempt is over when the first
// process, the leader, ends; what the leader left behind is killed then, so that it can neither run beside the next
// attempt nor hold a pipe open.
//
// A number outlives its process: once the leader has been waited for, its pid may become somebody else's process, and
// with a new session somebody else's group. So everything is killed while the leader is dead but not yet waited for (a
// zombie still owns its pid), and nothing is signalled afterwards.
//
// # Limits
//
//   - Linux: all of the session is found, whatever groups it made. A process that made a session of its own (setsid, a
//     daemon) is not found. Without /proc only the leader's group is.
//   - Other unixes: only the leader's group is found; see process_other.go for how narrowly a reused pid is avoided.
//   - Windows: everything is found, unless it was started in the instant before the leader was put into its job.
//   - A process of another user (sudo) cannot be killed without the right to; it is neither waited for nor counted.
//   - The program must not ignore SIGCHLD nor wait for children that it did not start: pids would no longer be held.
//
// Only Linux is tested with every change; the others are compiled.
//
// On Linux a worker has its commands started by a guardian, a process that outlives it for as long as it takes to kill them
// (guardian.go). Elsewhere they are started directly, and those of a killed worker live on until its leases have run out and
// beyond: nothing finds them.
//
// The package knows paths, pids and signals, and nothing of what a command is run for.
package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// Command is what Start starts.
type Command struct {
	Path string   // what is executed. No lookup in PATH, no shell; a relative one is relative to Dir
	Argv []string // all words, the name of the program first: passed on byte for byte (Windows: quoted into one line)
	Env  []string // the whole environment; nil is an empty one
	Dir  string   // working directory; empty is the caller's

	// Descriptors 0, 1 and 2; nil is the null device. They stay the caller's to close. A pipe end given here is set to
	// blocking mode.
	Stdin, Stdout, Stderr *os.File

	// KillAfter is the time between TERM and KILL when the start is cancelled; 0: KILL at once. Only guardians start what can be cancelled.
	KillAfter time.Duration
}

// Exit says how the leader ended, and what was left of the command then.
type Exit struct {
	Code         int             // exit status; -1 when ended by a signal. Windows: 1 after Kill
	Signal       int             // the signal that ended it; 0 when none, and always on Windows
	LeftOver     int             // processes that were killed because they outlived the leader; 0 after Kill. Unixes but Linux: 1 is "some"
	Denied       []MarkedProcess // processes of the command that live on because this user may not kill them; by guardians only
	User, System time.Duration   // time on the CPU, of the leader and (unixes) of the descendants that were waited for
}

// Process is a started command. All methods may be called at any time from any goroutine.
type Process struct {
	proc *os.Process
	pid  int
	job  job // what the system needs beside the pid: nothing on unixes

	mu     sync.Mutex // held while signalling, and while the pid is given back
	waited bool       // Wait was called
	killed bool       // Kill was called in time
	ended  bool       // the pid is given back and may be anybody's
}

// Start starts c as the leader of its own session and process group, without a terminal, and returns when its program
// has been executed. The child has the descriptors 0, 1 and 2 only; for that, every other descriptor of the calling
// process is set to close on exec. Wait must be called, or the process stays behind as a zombie.
//
// Errors keep what the system said: errors.Is finds ENOENT, EACCES, ENOEXEC and the like (on Windows fs.ErrNotExist
// and fs.ErrPermission). A *DirError means that Dir was the culprit; OutOfResources tells whether the machine was.
func Start(c Command) (*Process, error) {
	files, done, err := c.files()
	if err != nil {
		return nil, err
	}
	defer done()
	env := c.Env
	if env == nil {
		env = []string{} // nil would be the caller's
	}
	p, err := start(c.Path, c.Argv, &os.ProcAttr{Dir: c.Dir, Env: env, Files: files})
	return p, c.explain(err)
}

// files returns the descriptors of the child, and what to call when it has them.
func (c *Command) files() ([]*os.File, func(), error) {
	if len(c.Argv) == 0 {
		return nil, nil, &os.PathError{Op: "start", Path: c.Path, Err: syscall.EINVAL}
	}
	files := []*os.File{c.Stdin, c.Stdout, c.Stderr}
	done := func() {}
	if slices.Contains(files, nil) {
		null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
		if err != nil {
			return nil, nil, err
		}
		done = func() { _ = null.Close() }
		for i, f := range files {
			files[i] = cmp.Or(f, null)
		}
	}
	for _, f := range files {
		if f.Fd() == ^uintptr(0) { // closed: the child would start without this descriptor, and its first file take its place
			done()
			return nil, nil, &os.PathError{Op: "start", Path: f.Name(), Err: os.ErrClosed}
		}
	}
	return files, done, nil
}

// explain says that the directory was the culprit, if it was: the child reports a number and not which call failed.
func (c *Command) explain(err error) error {
	if err != nil && c.Dir != "" && !OutOfResources(err) {
		if err := checkDir(c.Dir); err != nil {
			return &DirError{Dir: c.Dir, Err: err}
		}
	}
	return err
}

// checkDir tells why a process could not make dir its working directory; nil if it could.
func checkDir(dir string) error {
	info, err := os.Stat(dir + string(os.PathSeparator) + ".") // the dot needs the right to search, as chdir does
	var failed *os.PathError
	switch {
	case errors.As(err, &failed):
		return failed.Err
	case err == nil && !info.IsDir():
		return syscall.ENOTDIR
	}
	return err
}

// Pid returns the process id of the leader, which on unixes is also the id of its group and session.
func (p *Process) Pid() int { return p.pid }

// Terminate asks the command to end: SIGTERM to its group, then SIGCONT, because a stopped process would not see it
// (Windows: a Ctrl-Break event, which needs a console shared with the command). After the end it does nothing.
func (p *Process) Terminate() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil
	}
	return p.terminate()
}

// Kill ends the whole command at once: SIGKILL to its group and, on Linux, to all of its session (Windows: its job).
// It does not wait. The error says that some process could not be killed; the others were. After the end it does
// nothing.
func (p *Process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil
	}
	p.killed = true
	return p.kill()
}

// Wait waits for the leader to end, kills what it left behind and returns how it ended. It does not wait for pipes. It
// waits for the left-overs only until they are gone or a second is over: one that hangs in the kernel dies later. It
// may be called once. An error means that the end of the leader was not seen, because another part of the program
// waited for the same child: see the limits above.
func (p *Process) Wait() (Exit, error) {
	p.mu.Lock()
	again := p.waited
	p.waited = true
	p.mu.Unlock()
	if again {
		return Exit{}, errors.New("process: Wait was called before")
	}
	state, leftOver, err := p.wait()
	if err != nil {
		return Exit{}, fmt.Errorf("wait for process %d: %w", p.pid, err)
	}
	exit := Exit{Code: state.ExitCode(), LeftOver: leftOver, User: state.UserTime(), System: state.SystemTime()}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		exit.Signal = int(status.Signal())
	}
	if p.killed { // what fell with the leader was not left behind
		exit.LeftOver = 0
	}
	return exit, nil
}

// started are the pids of this process's children that this package waits for. A lock is held while one is started, until it is among them.
var (
	ownChildren sync.Map
	startMu     sync.RWMutex
)

// release gives the pid back by reaping the leader, which must have ended. From then on nothing is signalled.
func (p *Process) release() (*os.ProcessState, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	ownChildren.Delete(p.pid)
	return p.proc.Wait()
}

// DirError is returned by Start when the working directory could not be entered.
type DirError struct {
	Dir string
	Err error
}

func (e *DirError) Error() string { return "enter directory " + e.Dir + ": " + e.Err.Error() }
func (e *DirError) Unwrap() error { return e.Err }

// OutOfResources reports whether an error of Start is the machine's and not the command's: no process, memory or descriptor
// was to be had. The same command may start well a little later.
func OutOfResources(err error) bool {
	return slices.ContainsFunc(resourceErrors, func(t syscall.Errno) bool { return errors.Is(err, t) })
}
