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
		case !errors.Is(err, unix.EINTR): // try again after EINTR: on some network and FUSE file systems a signal interrupts exec and chdir
			return nil, err
		}
	}
}

// terminate sends TERM before CONT, so TERM is pending when a stopped process continues.
func (p *Process) terminate() error {
	return errors.Join(signalGroup(p.Pid(), unix.SIGTERM), signalGroup(p.Pid(), unix.SIGCONT))
}

// kill kills the process group only, because not every system lists the members of a session. macOS returns EPERM if
// only zombies are left of the group.
func (p *Process) kill() error { return signalGroup(p.Pid(), unix.SIGKILL) }

// wait reaps the leader and kills its process group directly afterwards, unless the group may live on. It cannot keep
// the leader as a zombie until the kill, because x/sys has no waitid for most systems.
//
// While a member of the group lives, the kernel gives the id of the group to no new process. So the signal reaches the
// left-over processes, or no process if none is left. One risk remains: if the group is empty, a new process may take
// its id and become a group leader in the microseconds between the reaping of the leader and the kill. A call of Kill or
// Terminate in these microseconds has the same risk.
func (p *Process) wait() (*os.ProcessState, error) {
	state, err := p.proc.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true

	// An error means that other code has reaped the child at an unknown time. The kernel may have reused the id of the group since, so wait
	// does not signal the group then.
	if err == nil && !(p.leave && state.Exited()) {
		_ = signalGroup(p.Pid(), unix.SIGKILL)
	}
	return state, err
}

// signalGroup signals every process of the group that pid leads. Until the leader is reaped, the kernel does not reuse
// the id of the group. The kernel signals all members in one step, so none can escape by a fork.
func signalGroup(pid int, s unix.Signal) error {
	if err := unix.Kill(-pid, s); err != nil && err != unix.ESRCH {
		return os.NewSyscallError("kill", err)
	}
	return nil
}

// setListedCloseOnExec sets every descriptor above 2 that is listed in /dev/fd to close on exec. Without /dev/fd
// (FreeBSD without fdescfs), commands inherit the descriptors that this process itself inherited. They do not inherit
// files that Go opened.
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

// readRest reads the data that is in a pipe now. It does not wait for more.
func readRest(r *os.File, buffer []byte, take func([]byte)) error {
	if err := r.SetReadDeadline(time.Time{}); err != nil { // remove the deadline: it has expired, so every read would fail
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
			take(buffer[:n])
			rest -= n
		}
		return true // do not wait for more data
	})
	return errors.Join(err, failed)
}
