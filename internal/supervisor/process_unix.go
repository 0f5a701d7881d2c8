//go:build unix

package supervisor

import (
	"errors"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

var resourceErrors = []syscall.Errno{unix.EAGAIN, unix.ENOMEM, unix.EMFILE, unix.ENFILE}

type job struct{}

func start(path string, argv []string, attr *os.ProcAttr) (*Process, error) {
	attr.Sys = &syscall.SysProcAttr{Setsid: true}
	setListedCloseOnExec()
	for {
		proc, err := os.StartProcess(path, argv, attr)
		switch {
		case err == nil:
			return &Process{proc: proc}, nil
		case !errors.Is(err, unix.EINTR): // as in forkExec (attempt_linux.go)
			return nil, err
		}
	}
}

// terminate sends TERM before CONT, so TERM is pending when a stopped process
// continues.
func (p *Process) terminate() error {
	return errors.Join(signalGroup(p.Pid(), unix.SIGTERM), signalGroup(p.Pid(), unix.SIGCONT))
}

// kill kills the process group only, because not every system lists the members
// of a session. macOS returns EPERM if only zombies are left of the group.
func (p *Process) kill() error { return signalGroup(p.Pid(), unix.SIGKILL) }

// wait reaps the leader and then kills its process group, unless the group may
// live on. It can't keep the leader as a zombie until the kill, because x/sys
// has no waitid for most systems.
//
// While a member of the group lives, no new process gets the group's id. So the
// signal reaches what is left over, or nothing. One risk remains: if the group
// is empty, a new process may take its id and become a group leader in the
// microseconds between reaping and kill. Kill and Terminate share it.
func (p *Process) wait() (*os.ProcessState, error) {
	state, err := p.proc.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()

	p.ended = true

	// An error means that other code has reaped the child, at an unknown time.
	// The group's id may be reused since.
	if err == nil && !(p.leave && state.Exited()) {
		_ = signalGroup(p.Pid(), unix.SIGKILL)
	}
	return state, err
}

// signalGroup signals every process of the group that pid leads. Until the
// leader is reaped, the group's id isn't reused. The kernel signals all members
// in one step, so none can escape by a fork.
func signalGroup(pid int, s unix.Signal) error {
	if err := unix.Kill(-pid, s); err != nil && err != unix.ESRCH {
		return os.NewSyscallError("kill", err)
	}
	return nil
}

// setListedCloseOnExec sets every descriptor above 2 in /dev/fd to close on
// exec. Without /dev/fd (FreeBSD without fdescfs), commands inherit what this
// process itself inherited, but no files that Go opened.
func setListedCloseOnExec() {
	dir, err := os.Open("/dev/fd")
	if err != nil {
		return
	}
	defer dir.Close()

	names, _ := dir.Readdirnames(-1)
	for _, name := range names {
		if fd, err := strconv.Atoi(name); err == nil && fd > 2 {
			unix.CloseOnExec(fd)
		}
	}
}

// readRest reads what is in a pipe now. It doesn't wait for more.
func readRest(r *os.File, buffer []byte, handle func([]byte)) error {
	if err := r.SetReadDeadline(time.Time{}); err != nil { // with the expired deadline every read would fail
		return err
	}

	raw, err := r.SyscallConn()
	if err != nil {
		return err
	}

	var failed error
	err = raw.Read(func(fd uintptr) bool {
		for rest := maxPipe; rest > 0; {
			n, err := unix.Read(int(fd), buffer)
			switch {
			case err == unix.EINTR:
				continue
			case err != nil && err != unix.EAGAIN:
				failed = err
			}

			if n <= 0 {
				break
			}

			handle(buffer[:n])
			rest -= n
		}
		return true // don't wait for more data
	})
	return errors.Join(err, failed)
}
