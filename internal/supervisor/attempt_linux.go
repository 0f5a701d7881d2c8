package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// An attempt in a guardian has these steps, all on one thread: write the record of the attempt into the lock file, fork the leader, wait
// for the end of the leader, kill and reap the remaining children, clear the record, report the end.
//
// Invariants:
//   - The record is in the file from before the fork until the guardian has killed all processes that it is permitted to kill. If the
//     guardian dies in between, the process that takes the lock knows which attempt may have left processes.
//   - The report is the last step. When the worker reads it, no process of the attempt is left, except those that the report names or
//     counts.
//   - Waitid leaves an ended child as a zombie, so its pid and its process group are not reused. While a command runs, only reap
//     removes zombies. It holds the mutex, as every sender of a signal does.
//   - If a process is killed, its children become children of the guardian. So killRemaining repeats its kills until no child is left.
//   - If the exit status of the leader cannot be read, the guardian exits. Its worker then treats the attempt as lost. A guessed status
//     could complete a task that has failed.

const (
	deniedGrace = 250 * time.Millisecond // time to wait for processes of other users, which a guardian cannot kill without a cgroup
	minPause    = 50 * time.Microsecond  // first pause between checks of killed processes; the pause doubles up to maxPause
	maxPause    = 50 * time.Millisecond
)

// run executes attempts one after the other, until the worker is gone and no process is left. It forks all commands on its own thread.
func (g *guardian) run() {
	// Each start adds one to the eventfd, and so does the shutdown. Each read takes one away.
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
	if !g.left { // reading g.left needs no lock here, because only this goroutine sets it
		g.killRemaining(nil)
	}
}

// runAttempt starts a command, waits until all of its processes have ended, and reports the result to the worker. It returns false if
// processes are left: processes that the guardian is not permitted to kill, or processes that LeaveChildren allows. Such a guardian starts
// no other command.
func (g *guardian) runAttempt(a *attempt) (reusable bool) {
	refuse := func(why string, errno syscall.Errno) bool {
		closeAll(a.files)
		g.finish(a)
		g.send(&reply{Op: opRefused, Key: a.Key, Reason: why, Errno: int(errno)})
		return true
	}
	g.mu.Lock()
	unwanted, late := a.killed || a.termSent || g.stopping, monotonic() >= a.Deadline
	g.mu.Unlock()
	switch {
	case unwanted:
		return refuse(reasonStopping, 0)
	case late:
		return refuse(reasonLate, 0)
	}
	// If a process takes the lock later, this record tells it which attempt may have left processes behind.
	if err := g.lock.setRecord(g.slot, a.Key); err != nil {
		return refuse(reasonExec, unix.ENOSPC)
	}
	pid, pidfd, err := g.spawn(a)
	if err != nil {
		errno, why := syscall.EIO, reasonExec
		errors.As(err, &errno)
		if failed, ok := errors.AsType[*ResourceError](err); ok {
			why = failed.Resource
		}
		_ = g.lock.setRecord(g.slot, Key{})
		return refuse(why, errno)
	}
	closeAll(a.files)
	g.mu.Lock()
	a.leader = pid
	switch { // a kill request may have arrived during the fork
	case a.killed || g.stopping:
		g.killAll()
	case a.termSent:
		a.terminate()
	}
	g.mu.Unlock()
	if pidfd >= 0 {
		readableWithin(pidfd, rawPollTime)
		unix.Close(pidfd)
	}
	g.awaitLeader(a)
	exit := &a.exit
	if exit.Left = g.leaveRemaining(a); exit.Left == 0 {
		exit.Denied = g.killRemaining(a)
	}
	exit.OutOfMemory = a.Memory > 0 && oomKills(g.cgroupDir) > 0
	if a.isStopped() || exit.OutOfMemory {
		// Runner or the kernel has ended all processes of the command. So none of them counts as left over from the leader.
		exit.LeftOver = 0
	}
	_ = g.lock.setRecord(g.slot, Key{}) // clear the record even if some processes cannot be killed, because the report names these
	g.finish(a)
	g.send(&reply{Op: opExited, Key: a.Key, Late: a.late, Exit: exit})
	return len(exit.Denied) == 0 && exit.Left == 0
}

// finish ends an attempt and makes the guardian ready for the next attempt.
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

// spawn starts the leader in a session of its own. The leader dies with this thread, and so with the guardian. pidfd is -1 if
// the kernel does not support pidfds.
func (g *guardian) spawn(a *attempt) (pid, pidfd int, err error) {
	path, dir, argv, env := a.words()
	attr := &syscall.ProcAttr{Dir: dir, Env: env,
		Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, PidFD: &pidfd, Credential: a.User.credential()}}
	if err := g.applyLimits(a.Resources); err != nil {
		return 0, -1, err
	}
	for _, fd := range a.files {
		attr.Files = append(attr.Files, uintptr(fd))
	}
	fork := func() (int, error) { return forkExec(path, argv, attr) }
	if g.cgroupDir != "" {
		attr.Sys.UseCgroupFD, attr.Sys.CgroupFD = true, g.cgroupFD
		pid, err := forkWith(a, fork)
		if err == nil || len(a.cgroupLimits()) > 0 {
			return pid, pidfd, err
		}
		// The cgroup may have caused the error: it was removed, or it is of a type that takes no processes.
		attr.Sys.UseCgroupFD = false
	}
	pid, err = forkWith(a, fork)
	return pid, pidfd, err
}

func forkExec(path string, argv []string, attr *syscall.ProcAttr) (int, error) {
	for {
		pid, err := syscall.ForkExec(path, argv, attr)
		if err != syscall.EINTR { // try again after EINTR: on some network and FUSE file systems a signal interrupts exec and chdir
			return pid, err
		}
	}
}

// awaitLeader waits until the leader of an attempt has ended. It also reaps orphans that end before the leader.
func (g *guardian) awaitLeader(a *attempt) {
	for !a.ended {
		if _, _, err := endedChild(0); err != nil {
			os.Exit(1) // impossible while the leader is a child of this process; its exit status is unknown
		}
		g.mu.Lock()
		g.reap(a)
		g.mu.Unlock()
	}
}

// exitedItself is the code of waitid for a process that has called exit (CLD_EXITED).
const exitedItself = 1

// endedChild waits for a child that has ended, and leaves it as a zombie. With WNOHANG it does not wait, and returns the pid 0 if none has
// ended. The code tells how the child ended.
func endedChild(flags int) (pid int, code int32, err error) {
	for {
		var info unix.Siginfo
		// WALL includes children that clone created with an exit signal other than SIGCHLD.
		err := unix.Waitid(unix.P_ALL, 0, &info, flags|unix.WEXITED|unix.WNOWAIT|unix.WALL, nil)
		if err != unix.EINTR {
			// Package unix has no name for si_pid. The field si_pid follows three ints and is aligned like a pointer.
			return int(*(*int32)(unsafe.Add(unsafe.Pointer(&info), 8+unsafe.Sizeof(uintptr(0))))), info.Code, err
		}
	}
}

// reap reaps the children that have ended, and reports whether no child remains. It sets the exit of the attempt when the leader is one of
// them. Children that SIGKILL has ended after the leader count as left over. The attempt is nil if none runs. The caller holds the mutex.
func (g *guardian) reap(a *attempt) (noChildren bool) {
	for {
		pid, code, err := endedChild(unix.WNOHANG)
		if err != nil || pid == 0 {
			return err != nil
		}
		leader := a != nil && !a.ended && pid == a.leader
		if leader {
			if a.Leave = a.Leave && code == exitedItself && !g.mayBeKilled(a); !a.Leave {
				_ = signalGroup(pid, unix.SIGKILL) // safe: the kernel does not reuse the id of a group while its leader is a zombie
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
			os.Exit(1) // the exit status of the command is unknown; without its guardian the attempt counts as lost
		case leader:
			a.end(status)
		case killed && a.ended && !a.Leave:
			a.exit.LeftOver++
		}
	}
}

// mayBeKilled reports whether somebody may have killed processes of an attempt: this guardian, or after the deadline another worker, in any
// order, so that the leader exits only because one of its children was killed.
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
		// After the deadline, a worker that takes over the task may kill the command before this guardian does. Such a kill also counts as
		// a kill at the deadline.
		a.late = true
	}
}

// killRemaining kills all remaining processes of an attempt and waits until none is left. After deniedGrace it stops waiting for processes
// that it is not permitted to kill, and returns them. If no attempt runs (a is nil), killRemaining waits for such processes until the
// worker is gone.
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

// killAll kills all processes of the attempt that it can reach: its cgroup, the process group of its leader, and the
// children of this process. The orphans of these processes become children of this process, and the next call kills
// them. killAll returns the number of children that it killed, and the pids of the processes that it is not permitted
// to kill. The caller holds the mutex. So no child is reaped in the meantime, and no pid is reused.
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
			// ForkExec runs in another thread. If the exec of the child fails, ForkExec reaps the child, and the kernel may reuse its
			// pid. So look whether it is still a child of this process; but only now, because /proc may hide processes (hidepid).
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

// usageOf converts the usage that wait4 reports. The usage includes a process and the descendants for which it
// has waited.
// The kernel counts transfers in blocks of 512 bytes. It counts a write when a page becomes dirty, not when the page
// reaches the disk.
func usageOf(r *unix.Rusage) Usage {
	const block = 512
	return Usage{User: time.Duration(r.Utime.Nano()), System: time.Duration(r.Stime.Nano()), MaxRSS: int64(r.Maxrss) << 10,
		Read: int64(r.Inblock) * block, Written: int64(r.Oublock) * block}
}

// leaveTimeout limits the time for moving the processes of a command that forks all the time.
const leaveTimeout = time.Second

// leaveRemaining lets the remaining processes of an attempt live on if its command may leave them. It returns their number. The guardian
// then ends without killing them, and they become children of the worker or of the init process.
func (g *guardian) leaveRemaining(a *attempt) int {
	g.mu.Lock()
	if !a.Leave || g.stopping {
		g.mu.Unlock()
		return 0
	}
	if g.reap(a) {
		g.mu.Unlock()
		return 0
	}
	g.left = true
	g.mu.Unlock()
	mine, left := children(), 0
	for _, pid := range processes() {
		m, _ := readMark(pid)
		if (m == Mark{g.worker, a.Key} || slices.Contains(mine, pid)) && running(pid) {
			left++
		}
	}
	if g.cgroupDir != "" {
		emptyCgroup(g.cgroupDir)
	}
	return max(left, 1) // not 0, because a worker that reads 0 gives this guardian another command
}

// emptyCgroup moves all processes of a cgroup, and of the cgroups below it, to the cgroup of this guardian.
func emptyCgroup(dir string) {
	own := filepath.Join(ownCgroup(), "cgroup.procs")
	for began := monotonic(); monotonic()-began < int64(leaveTimeout); { // repeat the walk, because a process may fork during it
		moved := false
		for _, pid := range membersOf(dir) {
			moved = os.WriteFile(own, []byte(strconv.Itoa(pid)), 0) == nil || moved
		}
		if !moved {
			return
		}
	}
}
