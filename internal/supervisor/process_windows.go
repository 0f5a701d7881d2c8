package supervisor

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"

	"golang.org/x/sys/windows"
)

var resourceErrors = []syscall.Errno{
	windows.ERROR_TOO_MANY_OPEN_FILES, windows.ERROR_NOT_ENOUGH_MEMORY,
	windows.ERROR_NO_SYSTEM_RESOURCES, windows.ERROR_COMMITMENT_LIMIT,
}

// start starts the command in a process group of its own, so that Ctrl-Break
// can be sent to this command alone.
func start(path string, argv []string, attr *os.ProcAttr) (*Process, error) {
	attr.Sys = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
	proc, err := os.StartProcess(path, argv, attr)
	if err != nil {
		return nil, err
	}
	return &Process{proc: proc}, nil
}

func (p *Process) terminate() error {
	return os.NewSyscallError("GenerateConsoleCtrlEvent", windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, uint32(p.Pid())))
}

// kill kills the leader and its descendants. p.proc keeps the pid from being
// reused.
func (p *Process) kill() error {
	return exec.Command("taskkill", "/T", "/F", "/PID", strconv.Itoa(p.Pid())).Run()
}

// wait waits for the leader. Windows doesn't tell afterwards which processes it
// has left behind, so they live on.
func (p *Process) wait() (*os.ProcessState, error) {
	state, err := p.proc.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	return state, err
}

// readRest returns an error. Pipes on Windows have no read deadlines, so ReadPipe reads them to their end and never
// calls readRest.
func readRest(*os.File, []byte, func([]byte)) error { return os.ErrNoDeadline }
