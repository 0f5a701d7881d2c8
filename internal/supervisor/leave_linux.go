package supervisor

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// leaveTimeout limits the time for moving the processes of a command that forks all the time.
const leaveTimeout = time.Second

// exitedItself is the code of waitid for a process that has called exit (CLD_EXITED).
const exitedItself = 1

// endedItself reports whether the leader of an attempt, which is a zombie now, has ended by itself: it has exited, no signal was sent to
// end it, and its deadline has not passed. After the deadline another worker may kill the processes of the attempt in any order. Then the
// leader may exit only because one of its children was killed, so endedItself returns false. The caller holds the mutex.
func (g *guardian) endedItself(a *attempt) bool {
	if a.isStopped() || g.stopping || monotonic() >= a.Deadline {
		return false
	}
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, a.leader, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG|unix.WALL, nil)
	return err == nil && info.Code == exitedItself
}

// leaveRemaining lets the remaining processes of an attempt live on if its command may leave them. It returns their number. The guardian
// then ends without killing them, and they become children of the worker or of the init process.
func (g *guardian) leaveRemaining(a *attempt) int {
	g.mu.Lock()
	if !a.Leave || g.stopping {
		g.mu.Unlock()
		return 0
	}
	killed, noChildren := g.reapAll()
	g.cgroupKilled = g.cgroupKilled || g.cgroupDir != "" && killed > 0 // SIGKILL ended a child: another worker may have killed the cgroup
	if noChildren {
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
