package supervisor

import (
	"errors"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	deniedGrace = 250 * time.Millisecond // for processes of other users to end by themselves, or by their cgroup
	minPause    = 50 * time.Microsecond  // between two looks at processes that were killed
	maxPause    = 50 * time.Millisecond
)

// run guards one attempt after the other, until the worker is gone and no process is left. All commands are forked on its thread.
func (g *guardian) run() {
	for count := make([]byte, 8); ; { // one for each order, and one for the end
		awaitReadable(g.startEvent)
		if _, err := unix.Read(g.startEvent, count); err != nil {
			continue
		}
		if o, ok := <-g.starts; !ok || !g.runAttempt(o) {
			break
		}
	}
	g.killRemaining(nil)
}

// runAttempt starts a command, waits for its end and for that of all that it has left behind, and reports. It returns false when processes are
// left that cannot be killed: then this guardian serves no more.
func (g *guardian) runAttempt(o startOrder) (reusable bool) {
	a := o.attempt
	refuse := func(why string, errno syscall.Errno) bool {
		closeAll(o.files)
		g.finish(a)
		g.send(&reply{Op: opRefused, Key: a.Key, Reason: why, Errno: int(errno)})
		return true
	}
	g.mu.Lock()
	unwanted, late := a.killed || a.termSent || g.stopping, monotonic() >= a.deadline
	g.mu.Unlock()
	switch {
	case unwanted:
		return refuse(reasonStopping, 0)
	case late:
		return refuse(reasonLate, 0)
	}
	if err := g.lock.setRecord(g.slot, a.Key); err != nil { // whoever finds the lock must know
		return refuse(reasonExec, unix.ENOSPC)
	}
	pid, pidfd, err := g.spawn(o)
	if err != nil {
		errno := syscall.EIO
		errors.As(err, &errno)
		_ = g.lock.setRecord(g.slot, Key{})
		return refuse(reasonExec, errno)
	}
	closeAll(o.files)
	g.mu.Lock()
	a.leader = pid
	switch { // meanwhile
	case a.killed || g.stopping:
		g.killAll()
	case a.termSent:
		a.terminate()
	}
	g.mu.Unlock()
	if pidfd < 0 || !readableWithin(pidfd, startReportDelay) { // the report of a short command tells of its start, too
		g.send(&reply{Op: opStarted, Key: a.Key, Pid: pid})
	}
	if pidfd >= 0 {
		readableWithin(pidfd, rawPollTime)
		unix.Close(pidfd)
	}
	exit := g.awaitLeader(a)
	exit.LeftOver, exit.Denied = g.killRemaining(a)
	if a.endedBy != bySelf {
		exit.LeftOver = 0 // what fell with the leader was not left behind
	}
	_ = g.lock.setRecord(g.slot, Key{}) // processes that cannot be killed are in the report
	g.finish(a)
	g.send(&reply{Op: opExited, Key: a.Key, Pid: pid, EndedBy: a.endedBy, Exit: &exit})
	return len(exit.Denied) == 0
}

// finish makes room for the next attempt.
func (g *guardian) finish(a *attempt) {
	g.mu.Lock()
	a.ended = true
	g.attempt = nil
	cgroupKilled := g.cgroupKilled
	g.mu.Unlock()
	if cgroupKilled {
		g.closeCgroup()
		g.makeCgroup()
	}
}

// spawn starts the leader, in a session of its own. It dies with this thread, that is, with the guardian. pidfd is -1 where the system has noChildren.
func (g *guardian) spawn(o startOrder) (pid, pidfd int, err error) {
	attr := &syscall.ProcAttr{Dir: o.request.Dir, Env: o.request.Env,
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, PidFD: &pidfd}}
	for _, fd := range o.files {
		attr.Files = append(attr.Files, uintptr(fd))
	}
	_ = SetMark(0, MarkOf(g.worker, o.attempt.Key)) // told of in the hello if it fails
	defer func() { _ = SetMark(0, g.originalMark) }()
	if g.cgroupDir != "" {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, g.cgroupFD
		pid, err := forkExec(o.request, attr)
		if err == nil {
			return pid, pidfd, nil
		}
		attr.Sys.UseCgroupFD = false // the cgroup may be the reason: it was removed, or turned into one that takes no processes
	}
	pid, err = forkExec(o.request, attr)
	return pid, pidfd, err
}

func forkExec(r request, attr *syscall.ProcAttr) (int, error) {
	for {
		pid, err := syscall.ForkExec(r.Path, r.Argv, attr)
		if err != syscall.EINTR { // exec and chdir are interrupted on some network and user-space file systems
			return pid, err
		}
	}
}

// awaitLeader waits for the leader of an attempt to end. Orphans that end meanwhile are waited for, too.
func (g *guardian) awaitLeader(a *attempt) Exit {
	for {
		pid, err := awaitAnyChild()
		if err != nil { // cannot happen; what the leader did would never be known, and the worker takes this for a loss
			os.Exit(1)
		}
		if exit, ok := g.reap(a, pid); ok {
			return exit
		}
	}
}

// awaitAnyChild waits for a child to end, and leaves it a zombie, so that its number stays its own.
func awaitAnyChild() (int, error) {
	var info unix.Siginfo
	for {
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT|unix.WALL, nil) // WALL: clone makes children of other kinds, too
		if err == nil {
			// x/sys has no name for si_pid: it comes first after three ints, aligned as a pointer.
			return int(*(*int32)(unsafe.Add(unsafe.Pointer(&info), 8+unsafe.Sizeof(uintptr(0))))), nil
		}
		if err != unix.EINTR {
			return 0, err
		}
	}
}

// reap waits for a child that has ended. If it was the leader of the attempt, reap returns how it ended.
func (g *guardian) reap(a *attempt, pid int) (exit Exit, leader bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if leader = pid == a.leader; leader {
		_ = signalGroup(pid, unix.SIGKILL) // while the zombie holds the number of its group
	}
	var status unix.WaitStatus
	var usage unix.Rusage
	_, err := unix.Wait4(pid, &status, unix.WNOHANG|unix.WALL, &usage)
	if !leader {
		return exit, false
	}
	if err != nil {
		os.Exit(1) // as above
	}
	a.ended = true
	exit = Exit{Code: status.ExitStatus(), User: time.Duration(usage.Utime.Nano()), System: time.Duration(usage.Stime.Nano())}
	if status.Signaled() {
		exit.Signal = int(status.Signal())
		g.cgroupKilled = g.cgroupKilled || g.cgroupDir != "" && exit.Signal == int(unix.SIGKILL) // a worker that took over may have killed the cgroup
	}
	if a.endedBy == bySelf && exit.Signal == int(unix.SIGKILL) && monotonic() >= a.deadline {
		a.endedBy = byDeadline // killed by a worker that took over, if not by this process
	}
	return exit, true
}

// killRemaining kills all processes that are left of an attempt, and waits until there is noChildren. It does not wait for processes that may not be
// killed: it returns them. Without an attempt it waits for those, too, as long as there is a worker.
func (g *guardian) killRemaining(a *attempt) (leftOver int, denied []MarkedProcess) {
	for began, pause := monotonic(), minPause; ; pause = min(2*pause, maxPause) {
		g.mu.Lock()
		n, noChildren := reapAll()
		g.cgroupKilled = g.cgroupKilled || g.cgroupDir != "" && n > 0 // as in reap
		var living int
		var otherUsers []int
		if !noChildren {
			living, otherUsers = g.killAll()
		}
		waitLonger := a == nil && !g.stopping || monotonic()-began < int64(deniedGrace)
		g.mu.Unlock()
		if leftOver += n; noChildren {
			return leftOver, nil
		}
		if living == 0 && len(otherUsers) > 0 && !waitLonger {
			if denied = g.describeDenied(a, otherUsers); a == nil || len(denied) > 0 {
				return leftOver, denied
			}
		}
		time.Sleep(pause)
	}
}

// reapAll waits for the children that have ended. It returns how many of them were killed, and whether there is no child any more.
func reapAll() (killed int, noChildren bool) {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, unix.WNOHANG|unix.WALL, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return killed, true
		case pid == 0:
			return killed, false
		case status.Signaled() && status.Signal() == unix.SIGKILL:
			killed++
		}
	}
}

// killAll kills all processes of the attempt that can be reached: its cgroup, the group of its leader, and the children of this process.
// What these leave behind is reached by the next call. It returns how many children it could kill, and those that it may not. The mutex
// is held, so that no child is waited for meanwhile and no number changes hands.
func (g *guardian) killAll() (living int, denied []int) {
	if g.cgroupDir != "" {
		killCgroup(g.cgroupDir)
		g.cgroupKilled = true
	}
	starting := false
	if a := g.attempt; a != nil && !a.ended {
		if starting = a.leader == 0; !starting {
			_ = signalGroup(a.leader, unix.SIGKILL)
		}
	}
	for _, pid := range children() {
		var err error
		if starting { // fork and exec wait for a child that fails
			err = killIf(pid, func() bool { return parentOf(pid) == os.Getpid() })
		} else {
			err = unix.Kill(pid, unix.SIGKILL)
		}
		switch err {
		case nil:
			living++
		case unix.EPERM:
			denied = append(denied, pid)
		}
	}
	return living, denied
}

// describeDenied tells of the processes that may not be killed: of the children of this process, and of what they have started.
func (g *guardian) describeDenied(a *attempt, pids []int) (list []MarkedProcess) {
	if a == nil {
		return nil
	}
	mark := MarkOf(g.worker, a.Key)
	if list = findMarked(func(m Mark) bool { return m == mark }); len(list) > 0 {
		return list
	}
	for _, pid := range pids { // one that has shed its mark
		if p, ok := describeProcess(pid, mark); ok {
			list = append(list, p)
		}
	}
	return list
}
