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
	setCloseOnExec()
	startMu.RLock()
	defer startMu.RUnlock()
	for {
		proc, err := os.StartProcess(path, argv, attr)
		switch {
		case err == nil:
			ownChildren.Store(proc.Pid, true)
			return &Process{proc: proc, pid: proc.Pid}, nil
		case !errors.Is(err, unix.EINTR): // exec and chdir are interrupted on some network and user-space file systems
			return nil, err
		}
	}
}

// terminate sends TERM before CONT, so that a stopped process finds it pending when it goes on.
func (p *Process) terminate() error {
	return errors.Join(signalGroup(p.pid, unix.SIGTERM), signalGroup(p.pid, unix.SIGCONT))
}

// signalGroup signals every process of the group that pid leads. While the leader is not reaped the group cannot be
// another one. The kernel does it in one step: no member can fork itself away meanwhile.
func signalGroup(pid int, s unix.Signal) error {
	if err := unix.Kill(-pid, s); err != nil && err != unix.ESRCH {
		return os.NewSyscallError("kill", err)
	}
	return nil
}

// setListedCloseOnExec sets every descriptor above 2 that is listed in /dev/fd to close on exec. Where that is missing (FreeBSD
// without fdescfs), a descriptor that this process itself inherited is inherited by its commands too; those that Go
// opened are not.
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

// readRest reads what is in a pipe now, and does not wait.
func readRest(r *os.File, buffer []byte, take func([]byte)) error {
	if err := r.SetReadDeadline(time.Time{}); err != nil { // or nothing is read at all
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
		return true // do not wait for more
	})
	return errors.Join(err, failed)
}
