// Package supervisor starts a command detached from the terminal and the signals of its parent, and stops all processes
// of the command.
//
// # Problem
//
// A command is more than one process. Shells fork, and scripts leave processes in the background. A signal to the first
// process does not reach the others. So each command leads a session and a process group of its own (on Windows: it has
// a Job Object of its own). Signals go to the whole group. The attempt of the command is over when the first process,
// the leader, ends. Processes that the leader leaves behind are killed then, so they cannot run beside the next attempt
// or keep a pipe open.
//
// A pid can be reused. After the leader is reaped, its pid may become the pid of an unrelated process, or the id of an
// unrelated process group. So everything is killed while the leader is a zombie, which still owns its pid. Nothing is
// signalled afterwards.
//
// # Limits
//
//   - Linux: every process of the session is found, in any process group. A process that created its own session
//     (setsid, a daemon) is not found. Without /proc only the process group of the leader is found.
//   - Other Unix systems: only the process group of the leader is found. File process_other.go describes the remaining
//     risk of a reused pid.
//   - Windows: every process is found, except those that start before the leader is in its job.
//   - A process of another user (sudo) can be killed only with the right to do so. Otherwise it is neither waited for
//     nor counted.
//   - The program must not ignore SIGCHLD, and must not wait for children that it did not start. Otherwise a pid may be
//     reused too early.
//
// Every change is tested on Linux. For the other systems the package is only compiled.
//
// On Linux a guardian starts the commands of a worker (guardian.go). A guardian is a process that outlives its worker
// until it has killed the commands. On other systems the worker starts commands directly. There, the commands of a
// killed worker continue to run, also after its leases expire, and nothing finds them.
//
// The package handles paths, pids and signals. It does not know the purpose of a command.
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

// Command describes a command for Start.
type Command struct {
	Path string   // executed file, without a lookup in PATH and without a shell; relative to Dir
	Argv []string // program name and arguments, passed byte for byte (Windows: quoted into one line)
	Env  []string // whole environment; nil means empty
	Dir  string   // working directory; default: that of the caller

	// Stdin, Stdout and Stderr are the descriptors 0, 1 and 2. A nil file is the null device. The caller closes them.
	// Start sets a pipe to blocking mode.
	Stdin, Stdout, Stderr *os.File

	// KillAfter is the time between TERM and KILL when ctx ends during the start. With 0, KILL is sent at once. Only a
	// guardian uses it.
	KillAfter time.Duration
}

// Exit describes how the leader ended, and which processes of the command were left.
type Exit struct {
	Code   int // exit status; -1 after a signal; 1 after Kill on Windows
	Signal int // signal that ended the leader; 0 if none did, and always 0 on Windows
	// LeftOver is the number of processes that outlived the leader and were killed. It is 0 after Kill. Unix systems
	// other than Linux report 1 for any number.
	LeftOver int
	// Denied are processes of the command that live on because this user may not kill them. Only a guardian reports
	// them.
	Denied []MarkedProcess
	// User and System are the CPU time of the leader and (on Unix) of the descendants that were reaped.
	User, System time.Duration
}

// Process is a started command. All methods may be called at any time from any goroutine.
type Process struct {
	proc *os.Process
	pid  int
	job  job // data that the system needs besides the pid; empty on Unix

	mu     sync.Mutex // held while signalling and while reaping the leader
	waited bool       // whether Wait was called
	killed bool       // whether Kill was called before the end
	ended  bool       // whether the leader is reaped, so that its pid may be reused
}

// Start starts c as the leader of its own session and process group, without a terminal. It returns when the program
// has been executed. The child has only the descriptors 0, 1 and 2. To ensure that, Start sets every other descriptor
// of the calling process to close on exec. The caller must call Wait, or the process remains a zombie.
//
// Start keeps the error of the system. errors.Is finds ENOENT, EACCES, ENOEXEC and so on (on Windows fs.ErrNotExist and
// fs.ErrPermission). A *DirError means that the directory Dir caused the error. OutOfResources reports whether the
// machine lacks resources.
func Start(c Command) (*Process, error) {
	files, done, err := c.files()
	if err != nil {
		return nil, err
	}
	defer done()
	env := c.Env
	if env == nil {
		env = []string{} // nil would mean the environment of the caller
	}
	p, err := start(c.Path, c.Argv, &os.ProcAttr{Dir: c.Dir, Env: env, Files: files})
	return p, c.explain(err)
}

// files returns the descriptors of the child, and a function to call after the start.
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
		// The file is closed. The child would start without this descriptor, and the first file that it opens would
		// take its place.
		if f.Fd() == ^uintptr(0) {
			done()
			return nil, nil, &os.PathError{Op: "start", Path: f.Name(), Err: os.ErrClosed}
		}
	}
	return files, done, nil
}

// explain returns a DirError if Dir caused the error. The child reports only an error number, and not the call that
// failed.
func (c *Command) explain(err error) error {
	if err != nil && c.Dir != "" && !OutOfResources(err) {
		if err := checkDir(c.Dir); err != nil {
			return &DirError{Dir: c.Dir, Err: err}
		}
	}
	return err
}

// checkDir returns the reason why a process could not enter dir, or nil if it could.
func checkDir(dir string) error {
	info, err := os.Stat(dir + string(os.PathSeparator) + ".") // the dot needs search permission, as chdir does
	var failed *os.PathError
	switch {
	case errors.As(err, &failed):
		return failed.Err
	case err == nil && !info.IsDir():
		return syscall.ENOTDIR
	}
	return err
}

// Pid returns the process id of the leader. On Unix it is also the id of its process group and session.
func (p *Process) Pid() int { return p.pid }

// Terminate asks the command to end. It sends SIGTERM to the process group, then SIGCONT, because a stopped process
// handles no signal. On Windows it sends a Ctrl-Break event, which needs a console shared with the command. Terminate
// does nothing after the command has ended.
func (p *Process) Terminate() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil
	}
	return p.terminate()
}

// Kill kills all processes of the command. It sends SIGKILL to the process group and, on Linux, to the whole session.
// On Windows it ends the job. Kill does not wait. An error means that some process could not be killed; all others
// were. Kill does nothing after the command has ended.
func (p *Process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return nil
	}
	p.killed = true
	return p.kill()
}

// Wait waits until the leader has ended, kills the remaining processes of the command, and returns how the leader
// ended. It does not wait for pipes. It waits at most one second for the killed processes to disappear. A process that
// hangs in the kernel dies later.
//
// Wait may be called once. An error means that the exit status of the leader is unknown, because other code of the
// program has waited for the same child. See the limits above.
func (p *Process) Wait() (Exit, error) {
	p.mu.Lock()
	again := p.waited
	p.waited = true
	p.mu.Unlock()
	if again {
		return Exit{}, errors.New("Wait was called twice")
	}
	state, leftOver, err := p.wait()
	if err != nil {
		return Exit{}, fmt.Errorf("wait for process %d: %w", p.pid, err)
	}
	exit := Exit{Code: state.ExitCode(), LeftOver: leftOver, User: state.UserTime(), System: state.SystemTime()}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		exit.Signal = int(status.Signal())
	}
	// Processes that were killed together with the leader are not left over.
	if p.killed {
		exit.LeftOver = 0
	}
	return exit, nil
}

// ownChildren are the pids of the children that this package waits for. A start holds startMu for reading until the new
// pid is in ownChildren.
var (
	ownChildren sync.Map
	startMu     sync.RWMutex
)

// release reaps the leader, which must have ended. The pid may be reused afterwards, so nothing is signalled any more.
func (p *Process) release() (*os.ProcessState, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	ownChildren.Delete(p.pid)
	return p.proc.Wait()
}

// DirError means that the process could not enter its working directory.
type DirError struct {
	Dir string
	Err error
}

func (e *DirError) Error() string { return "enter directory " + e.Dir + ": " + e.Err.Error() }
func (e *DirError) Unwrap() error { return e.Err }

// OutOfResources reports whether Start failed because the machine lacks a process, memory or a descriptor. The same
// command may start successfully a little later.
func OutOfResources(err error) bool {
	return slices.ContainsFunc(resourceErrors, func(t syscall.Errno) bool { return errors.Is(err, t) })
}
