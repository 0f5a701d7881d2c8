package supervisor

import (
	"errors"
	"os"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An attempt in a guardian has these steps, all on one thread: write its record
// into the lock file, fork the leader, wait for the leader's end, kill and reap
// the remaining children, clear the record, report the end.
//
// Invariants:
//   - The record is in the file from before the fork until the guardian has
//     killed everything that it may kill. If the guardian dies in between,
//     whoever takes the lock knows which attempt may have left processes.
//   - The report is the last step. When the worker reads it, no process of the
//     attempt is left, except those that the report names or counts.
//   - waitid leaves an ended child as a zombie, so its pid and its process
//     group aren't reused. While a command runs, only reap removes zombies. It
//     holds the mutex, as every sender of a signal does.
//   - The children of a killed process become children of the guardian. So
//     killRemaining repeats its kills until no child is left.
//   - If the leader's exit status can't be read, the guardian exits, and its
//     worker treats the attempt as lost. A guessed status could complete a task
//     that has failed.

const (
	deniedGrace = 250 * time.Millisecond // for other users' processes, which only a cgroup could kill
	minPause    = 50 * time.Microsecond  // between checks of killed processes; doubles up to maxPause
	maxPause    = 50 * time.Millisecond
)

// run executes attempts one after the other on its own thread, until the worker
// is gone and no process is left.
func (g *guardian) run() {
	// Each start adds one to the eventfd, and so does the shutdown. Each read
	// takes one away.
	for count := make([]byte, 8); ; {
		awaitReadable(g.wake)
		if _, err := unix.Read(g.wake, count); err != nil {
			continue
		}

		g.mu.Lock()
		a := g.attempt
		g.mu.Unlock()
		if a == nil || !g.runAttempt(a) {
			break
		}
	}

	if !g.left { // no lock needed: only this goroutine sets it
		g.killRemaining(nil)
	}
}

// runAttempt starts a command, waits until all of its processes have ended, and
// reports the result. It returns false if processes are left: those that the
// guardian may not kill, or that LeaveChildren allows. Such a guardian starts
// no other command.
func (g *guardian) runAttempt(a *attempt) (reusable bool) {
	if why, errno := g.startLeader(a); why != "" {
		g.finish(a)
		g.send(&reply{Op: opRefused, Key: a.Key, Reason: why, Errno: int(errno)})
		return true
	}

	g.awaitLeader(a)

	exit := &a.exit
	if exit.Left = g.leaveRemaining(a); exit.Left == 0 {
		exit.Denied = g.killRemaining(a)
	}

	exit.OutOfMemory = a.Memory > 0 && oomKills(g.cgroupDir) > 0
	if a.isStopped() || exit.OutOfMemory {
		// Runner or the kernel has ended all processes of the command, so none
		// counts as left over from the leader.
		exit.LeftOver = 0
	}

	_ = g.lock.setRecord(g.slot, Key{}) // the report names what lives on
	g.finish(a)
	g.send(&reply{Op: opExited, Key: a.Key, Late: a.late, Exit: exit})
	return len(exit.Denied) == 0 && exit.Left == 0
}

// startLeader starts the command of an attempt. If it can't, it returns the
// reason, with an error number if there is one.
func (g *guardian) startLeader(a *attempt) (why string, errno syscall.Errno) {
	defer closeAll(a.files)

	g.mu.Lock()
	unwanted, late := a.killed || a.termSent || g.stopping, monotonic() >= a.Deadline
	g.mu.Unlock()
	switch {
	case unwanted:
		return reasonStopping, 0
	case late:
		return reasonLate, 0
	}

	if err := g.lock.setRecord(g.slot, a.Key); err != nil {
		return reasonExec, unix.ENOSPC
	}

	pid, err := g.spawn(a)
	if err != nil {
		_ = g.lock.setRecord(g.slot, Key{})
		errno, why = syscall.EIO, reasonExec
		errors.As(err, &errno)
		if failed, ok := errors.AsType[*ResourceError](err); ok {
			why = failed.Resource
		}
		return why, errno
	}

	g.mu.Lock()
	a.leader = pid
	switch { // a kill request may have arrived during the fork
	case a.killed || g.stopping:
		g.killAll()
	case a.termSent:
		a.terminate()
	}

	g.mu.Unlock()
	return "", 0
}

// finish ends an attempt and makes the guardian ready for the next one.
func (g *guardian) finish(a *attempt) {
	g.mu.Lock()
	a.ended = true
	g.attempt = nil
	spent := g.cgroupSpent && g.cgroupDir != ""
	g.mu.Unlock()

	close(a.over)
	if spent {
		g.closeCgroup()
		g.makeCgroup()
	}
}

// spawn starts the leader in a session of its own. The leader dies with this
// thread, and so with the guardian.
func (g *guardian) spawn(a *attempt) (pid int, err error) {
	path, dir, argv, env := a.words()
	attr := &syscall.ProcAttr{Dir: dir, Env: env, Sys: &syscall.SysProcAttr{
		Setsid:     true,
		Pdeathsig:  syscall.SIGKILL,
		PidFD:      &a.pidfd,
		Credential: a.User.credential(),
	}}
	if err := g.applyLimits(a.Resources); err != nil {
		return 0, err
	}

	for _, fd := range a.files {
		attr.Files = append(attr.Files, uintptr(fd))
	}

	fork := func() (int, error) { return forkExec(path, argv, attr) }
	if g.cgroupDir != "" {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, g.cgroupFD
		pid, err := forkWith(a, fork)
		if err == nil || len(a.cgroupLimits()) > 0 {
			return pid, err
		}
		// Perhaps the cgroup was the reason: it was removed, or its type takes
		// no processes.
		attr.Sys.UseCgroupFD = false
	}

	return forkWith(a, fork)
}

// forkExec tries again after EINTR: on some network and FUSE file systems a
// signal interrupts exec and chdir.
func forkExec(path string, argv []string, attr *syscall.ProcAttr) (int, error) {
	for {
		pid, err := syscall.ForkExec(path, argv, attr)
		if err != syscall.EINTR {
			return pid, err
		}
	}
}

// awaitLeader waits until the leader of an attempt has ended. It also reaps
// orphans that end before the leader.
func (g *guardian) awaitLeader(a *attempt) {
	if a.pidfd >= 0 {
		readableWithin(a.pidfd, rawPollTime)
		unix.Close(a.pidfd)
	}

	for !a.ended {
		if _, _, err := endedChild(0); err != nil {
			os.Exit(1) // impossible while the leader is a child of this process; its exit status is unknown
		}
		g.mu.Lock()
		g.reap(a)
		g.mu.Unlock()
	}
}

// exitedItself is the code of waitid for a process that has called exit
// (CLD_EXITED).
const exitedItself = 1

// endedChild waits for a child that has ended, and leaves it as a zombie. With
// WNOHANG it doesn't wait, and returns the pid 0 if none has ended. The code
// tells how the child ended.
func endedChild(flags int) (pid int, code int32, err error) {
	for {
		var info unix.Siginfo
		// WALL includes children that clone created with an exit signal other
		// than SIGCHLD.
		err := unix.Waitid(unix.P_ALL, 0, &info, flags|unix.WEXITED|unix.WNOWAIT|unix.WALL, nil)
		if err != unix.EINTR {
			// Package unix has no name for si_pid. It follows three ints and is
			// aligned like a pointer.
			at := 8 + unsafe.Sizeof(uintptr(0))
			return int(*(*int32)(unsafe.Add(unsafe.Pointer(&info), at))), info.Code, err
		}
	}
}

// reap reaps the children that have ended, and reports whether none remains. It
// sets the exit of the attempt when the leader is one of them. Children that
// SIGKILL has ended after the leader count as left over. a is nil if no attempt
// runs. The caller holds the mutex.
func (g *guardian) reap(a *attempt) (noChildren bool) {
	for {
		pid, code, err := endedChild(unix.WNOHANG)
		if err != nil || pid == 0 {
			return err != nil
		}

		leader := a != nil && !a.ended && pid == a.leader
		if leader {
			if a.Leave = a.Leave && code == exitedItself && !g.mayBeKilled(a); !a.Leave {
				_ = signalGroup(pid, unix.SIGKILL) // a zombie keeps its group's id from reuse
			}
		}

		var status unix.WaitStatus
		var usage unix.Rusage
		_, err = unix.Wait4(pid, &status, unix.WNOHANG|unix.WALL, &usage)
		killed := status.Signaled() && status.Signal() == unix.SIGKILL
		g.cgroupSpent = g.cgroupSpent || killed // another worker may have killed the whole cgroup
		if a == nil {
			continue
		}

		a.exit.Usage.add(usageOf(&usage))
		switch {
		case leader && err != nil:
			os.Exit(1) // the exit status is unknown; without its guardian the attempt counts as lost
		case leader:
			a.end(status)
		case killed && a.ended && !a.Leave:
			a.exit.LeftOver++
		}
	}
}

// mayBeKilled reports whether somebody may have killed processes of an attempt:
// this guardian, or after the deadline another worker. The leader may then exit
// only because one of its children was killed.
func (g *guardian) mayBeKilled(a *attempt) bool {
	return a.isStopped() || g.stopping || monotonic() >= a.Deadline
}

// end records how the leader ended.
func (a *attempt) end(status unix.WaitStatus) {
	a.ended = true
	a.exit.Code = status.ExitStatus()
	if status.Signaled() {
		a.exit.Signal = int(status.Signal())
	}
	if !a.isStopped() && a.exit.Signal == int(unix.SIGKILL) && monotonic() >= a.Deadline {
		// After the deadline, a worker that takes over the task may kill the
		// command before this guardian does. That too is a kill at the
		// deadline.
		a.late = true
	}
}

// killRemaining kills all remaining processes of an attempt and waits until
// none is left. After deniedGrace it stops waiting for those that it may not
// kill, and returns them. If no attempt runs (a is nil), it waits for them
// until the worker is gone.
func (g *guardian) killRemaining(a *attempt) (denied []MarkedProcess) {
	for began, pause := monotonic(), minPause; ; pause = min(2*pause, maxPause) {
		g.mu.Lock()
		noChildren := g.reap(a)
		var living int
		var otherUsers []int
		if !noChildren {
			living, otherUsers = g.killAll()
		}

		waitLonger := a == nil && !g.stopping || monotonic()-began < int64(deniedGrace)
		g.mu.Unlock()

		if noChildren {
			return nil
		}
		if living == 0 && len(otherUsers) > 0 && !waitLonger {
			for _, pid := range otherUsers {
				if p, ok := describeProcess(pid); ok {
					denied = append(denied, p)
				}
			}
			if a == nil || len(denied) > 0 {
				return denied
			}
		}

		time.Sleep(pause)
	}
}

// killAll kills what it can reach of an attempt: the cgroup, the leader's
// process group, and the children of this process. Their orphans become
// children of this process, and the next call kills them. killAll returns how
// many children it killed, and the pids of those that it may not kill. The
// caller holds the mutex, so no child is reaped meanwhile and no pid is reused.
func (g *guardian) killAll() (living int, denied []int) {
	if g.left {
		return 0, nil
	}
	if g.cgroupDir != "" {
		killCgroup(g.cgroupDir)
		g.cgroupSpent = true
	}

	starting := false
	if a := g.attempt; a != nil && !a.ended {
		if starting = a.leader == 0; !starting {
			_ = signalGroup(a.leader, unix.SIGKILL)
		}
	}

	for _, pid := range children() {
		kill := func() error { return unix.Kill(pid, unix.SIGKILL) }
		if starting {
			// ForkExec runs in another thread. If the exec fails, it reaps the
			// child, and the kernel may reuse the pid. So check that it is
			// still our child; but only now, because /proc may hide processes
			// (hidepid).
			kill = func() error { return killIf(pid, func() bool { return parentOf(pid) == os.Getpid() }) }
		}

		switch err := kill(); {
		case err == nil:
			living++
		case errors.Is(err, unix.EPERM):
			denied = append(denied, pid)
		}
	}

	return living, denied
}

// usageOf converts the usage that wait4 reports, of a process and of the
// descendants that it has waited for. The kernel counts transfers in blocks of
// 512 bytes, and a write when a page becomes dirty, not when it reaches the
// disk.
func usageOf(r *unix.Rusage) Usage {
	const block = 512
	return Usage{
		User:    time.Duration(r.Utime.Nano()),
		System:  time.Duration(r.Stime.Nano()),
		MaxRSS:  int64(r.Maxrss) << 10,
		Read:    int64(r.Inblock) * block,
		Written: int64(r.Oublock) * block,
	}
}
