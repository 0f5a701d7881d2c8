package supervisor

import (
	"fmt"
	"os"
	"sync"
	"syscall"
)

// Process is a command that this process has started itself, without a
// guardian. On Linux only tests use it, to check the code of the other Unix
// systems. All methods may be called at any time from any goroutine.
//
// # Limits
//
//   - Unix: only the leader's process group is killed. A process that has left
//     the group lives on. For the remaining risk of a reused pid, see wait in
//     process_unix.go.
//   - Windows: every process in the command's Job Object is killed. One that
//     the leader starts before it is put into the Job Object lives on.
//   - A process of another user (sudo) can be killed only with the right to do
//     so.
//   - The program must not ignore SIGCHLD, and must not wait for children that
//     it didn't start. Otherwise a pid may be reused too early.
type Process struct {
	proc *os.Process
	job  job           // Job Object that contains the processes on Windows; empty on Unix
	over chan struct{} // closed when exit and err are set
	exit Exit
	err  error

	mu    sync.Mutex // held while a signal is sent
	leave bool       // whether left-over processes live on; false after Terminate and Kill
	ended bool       // whether the leader is reaped, so that its pid may be reused
}

// Start starts c as the leader of its own session and process group, without a
// terminal. It returns when the program has been executed. The child has only
// the descriptors 0, 1 and 2: Start sets every other descriptor of the calling
// process to close on exec.
//
// Start returns the system's error, in which errors.Is finds ENOENT, EACCES,
// ENOEXEC and so on (on Windows fs.ErrNotExist and fs.ErrPermission).
func Start(c Command) (*Process, error) {
	if len(c.Argv) == 0 {
		return nil, &os.PathError{Op: "start", Path: c.Path, Err: syscall.EINVAL}
	}

	files, null, err := c.files()
	if err != nil {
		return nil, err
	}
	defer null.Close()

	env := c.Env
	if env == nil {
		env = []string{} // nil would mean the environment of the caller
	}

	p, err := start(c.Path, c.Argv, &os.ProcAttr{Dir: c.Dir, Env: env, Files: files})
	if err != nil {
		return nil, err
	}

	p.leave, p.over = c.LeaveChildren, make(chan struct{})
	go p.await()
	return p, nil
}

// Pid returns the leader's process id. On Unix it is also the id of its process
// group and session.
func (p *Process) Pid() int { return p.proc.Pid }

// Terminate asks the command to end. It sends SIGTERM to the process group,
// then SIGCONT, because a stopped process handles no signal. On Windows it
// sends a Ctrl-Break event, which needs a console shared with the command.
// After the command has ended, Terminate does nothing.
func (p *Process) Terminate() error { return p.stop(p.terminate) }

// Kill kills the command's processes: its process group, or its Job Object on
// Windows. It doesn't wait. An error means that some process couldn't be
// killed; all others were. After the command has ended, Kill does nothing.
func (p *Process) Kill() error { return p.stop(p.kill) }

func (p *Process) stop(signal func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()

	if p.ended {
		return nil
	}

	p.leave = false
	return signal()
}

// await waits until the leader has ended, and kills what remains of the command
// unless LeaveChildren spares it.
func (p *Process) await() {
	defer close(p.over)

	state, err := p.wait()
	if err != nil { // other code has waited for the same child
		p.err = fmt.Errorf("wait for process %d: %w", p.Pid(), err)
		return
	}

	p.exit = Exit{Code: state.ExitCode(), Usage: Usage{User: state.UserTime(), System: state.SystemTime()}}
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		p.exit.Signal = int(status.Signal())
	}
}

// Ended returns a channel that is closed when the command has ended; Wait then
// returns at once.
func (p *Process) Ended() <-chan struct{} { return p.over }

// Wait waits until the command has ended, and returns how its leader ended. It
// doesn't wait for pipes. An error means that the exit status is unknown.
func (p *Process) Wait() (Exit, error) {
	<-p.over
	return p.exit, p.err
}
