package supervisor

import (
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// leftMark is the mark of processes that a command with LeaveChildren has left behind, and of their descendants. It belongs to no task
// and no worker, so neither Sweep nor doctor takes them for processes of an attempt.
var leftMark = MarkOf("left", Key{})

// leaveTimeout limits the time for marking the processes of a command that forks all the time.
const leaveTimeout = time.Second

// exitedItself is the code of waitid for a process that has called exit (CLD_EXITED).
const exitedItself = 1

// endedItself reports whether the leader of an attempt, which is a zombie now, has ended by itself: it has exited, no signal was sent to
// end it, and its deadline has not passed. After the deadline another worker may kill the processes of the attempt in any order. Then the
// leader may exit only because one of its children was killed, so endedItself returns false. The caller holds the mutex.
func (g *guardian) endedItself(a *attempt) bool {
	if a.endedBy != bySelf || a.killed || a.termSent || g.stopping || monotonic() >= a.deadline {
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
	if !a.leave || g.stopping {
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
	left := map[int]bool{}
	mark := MarkOf(g.worker, a.Key)
	for began := monotonic(); ; {
		found := false
		for _, pid := range processes() {
			if readMark(pid) != mark || !running(pid) {
				continue
			}
			left[pid] = true
			found = SetMark(pid, leftMark) == nil || found // the guardian cannot change the mark of a process of another user
		}
		if !found || monotonic()-began > int64(leaveTimeout) {
			break
		}
	}
	for _, pid := range children() { // also include children that have removed their marks
		if running(pid) {
			left[pid] = true
		}
	}
	if g.cgroupDir != "" {
		emptyCgroup(g.cgroupDir)
	}
	return max(len(left), 1) // not 0, because a worker that reads 0 gives this guardian another command
}

// emptyCgroup moves all processes of a cgroup, and of the cgroups below it, to the cgroup of this guardian.
func emptyCgroup(dir string) {
	own := filepath.Join(ownCgroup(), "cgroup.procs")
	for began := monotonic(); monotonic()-began < int64(leaveTimeout); { // repeat the walk, because a process may fork during it
		moved := false
		_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.IsDir() {
				return nil
			}
			text, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
			for _, pid := range numbersIn(text) {
				moved = os.WriteFile(own, []byte(strconv.Itoa(pid)), 0) == nil || moved
			}
			return nil
		})
		if !moved {
			return
		}
	}
}
