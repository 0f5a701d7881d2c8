package supervisor

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

var resourceErrors = []syscall.Errno{
	windows.ERROR_TOO_MANY_OPEN_FILES, windows.ERROR_NOT_ENOUGH_MEMORY,
	windows.ERROR_NO_SYSTEM_RESOURCES, windows.ERROR_COMMITMENT_LIMIT,
}

// job is the Job Object that contains the processes of the command.
type job struct{ handle windows.Handle }

func start(path string, argv []string, attr *os.ProcAttr) (*Process, error) {
	handle, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, os.NewSyscallError("CreateJobObject", err)
	}

	j := job{handle}
	// With a process group of its own, Ctrl-Break can be sent to this command
	// alone. It inherits only the files in attr.
	attr.Sys = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
	proc, err := os.StartProcess(path, argv, attr)
	if err != nil {
		windows.CloseHandle(j.handle)
		return nil, err
	}

	// Processes that the leader starts before this call aren't in the Job
	// Object. A leader that is suspended at first would start none, but only
	// its thread handle can resume it, and os.StartProcess doesn't return that.
	if err := j.assign(proc); err != nil {
		proc.Kill()
		proc.Wait()
		windows.CloseHandle(j.handle)
		return nil, err
	}

	return &Process{proc: proc, job: j}, nil
}

// assign puts proc into the Job Object. The system rejects a process that has
// ended already, which is no error: it needs no Job Object.
func (j job) assign(proc *os.Process) error {
	var failed error
	err := proc.WithHandle(func(handle uintptr) {
		failed = windows.AssignProcessToJobObject(j.handle, windows.Handle(handle))
		if failed == nil {
			return
		}
		event, err := windows.WaitForSingleObject(windows.Handle(handle), 0)
		if err == nil && event == windows.WAIT_OBJECT_0 {
			failed = nil
		}
	})
	return errors.Join(err, os.NewSyscallError("AssignProcessToJobObject", failed))
}

func (p *Process) terminate() error {
	return os.NewSyscallError("GenerateConsoleCtrlEvent",
		windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(p.Pid())))
}

func (p *Process) kill() error {
	return os.NewSyscallError("TerminateJobObject", windows.TerminateJobObject(p.job.handle, 1))
}

// wait keeps the leader's handle open until the remaining processes are killed
// or may live on. Until then the pid isn't reused.
func (p *Process) wait() (*os.ProcessState, error) {
	var failed error
	err := p.proc.WithHandle(func(handle uintptr) {
		_, failed = windows.WaitForSingleObject(windows.Handle(handle), windows.INFINITE)
	})

	p.mu.Lock()
	defer p.mu.Unlock()

	p.ended = true

	var killed error
	if !p.leave {
		killed = p.kill()
	}

	state, lost := p.proc.Wait()
	windows.CloseHandle(p.job.handle) // nothing uses it any more, because p.ended is true
	return state, errors.Join(err, failed, lost, killed)
}

// readRest is never called: pipes on Windows have no read deadlines, so
// ReadPipe reads them to their end.
func readRest(*os.File, []byte, func([]byte)) error { return os.ErrNoDeadline }
