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
	// The command gets its own process group, so that Ctrl-Break can be sent to this command alone. It inherits only the files in attr.
	attr.Sys = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
	proc, err := os.StartProcess(path, argv, attr)
	if err != nil {
		windows.CloseHandle(j.handle)
		return nil, err
	}
	// Processes that the leader starts before this call are not in the Job Object. A leader that is suspended at first would start none.
	// But only its thread handle can resume it, and os.StartProcess does not return that handle.
	if err := j.assign(proc); err != nil {
		proc.Kill()
		proc.Wait()
		windows.CloseHandle(j.handle)
		return nil, err
	}
	return &Process{proc: proc, job: j}, nil
}

// assign puts proc into the Job Object. The system rejects a process that has ended already. That is no error, because such a process
// needs no Job Object.
func (j job) assign(proc *os.Process) error {
	var failed error
	err := proc.WithHandle(func(handle uintptr) {
		failed = windows.AssignProcessToJobObject(j.handle, windows.Handle(handle))
		if failed == nil {
			return
		}
		if event, err := windows.WaitForSingleObject(windows.Handle(handle), 0); err == nil && event == windows.WAIT_OBJECT_0 {
			failed = nil
		}
	})
	return errors.Join(err, os.NewSyscallError("AssignProcessToJobObject", failed))
}

func (p *Process) terminate() error {
	return os.NewSyscallError("GenerateConsoleCtrlEvent", windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(p.Pid())))
}

func (p *Process) kill() error {
	return os.NewSyscallError("TerminateJobObject", windows.TerminateJobObject(p.job.handle, 1))
}

// wait keeps the handle of the leader open until the remaining processes are killed or may live on. While the handle is open, the system
// does not reuse the pid.
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
	windows.CloseHandle(p.job.handle) // no method uses the handle any more, because p.ended is true
	return state, errors.Join(err, failed, lost, killed)
}

// readRest returns an error. Pipes on Windows have no read deadlines, so ReadPipe reads them to their end and never
// calls readRest.
func readRest(*os.File, []byte, func([]byte)) error { return os.ErrNoDeadline }
