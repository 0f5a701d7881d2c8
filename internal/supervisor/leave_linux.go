package supervisor

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

// leaveTimeout limits the time for moving the processes of a command that forks
// all the time.
const leaveTimeout = time.Second

// leaveRemaining lets the remaining processes of an attempt live on if its
// command may leave them, and returns their number. The guardian then ends
// without killing them, and they become children of the worker or of init.
func (g *guardian) leaveRemaining(a *attempt) int {
	g.mu.Lock()
	g.left = a.Leave && !g.stopping && !g.reap(a)
	g.mu.Unlock()
	if !g.left {
		return 0
	}

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

// emptyCgroup moves all processes of a cgroup, and of those below it, to the
// cgroup of this guardian.
func emptyCgroup(dir string) {
	own := filepath.Join(ownCgroup(), "cgroup.procs")
	for began := monotonic(); monotonic()-began < int64(leaveTimeout); { // a process may fork during the walk
		moved := false
		for _, pid := range membersOf(dir) {
			moved = os.WriteFile(own, []byte(strconv.Itoa(pid)), 0) == nil || moved
		}
		if !moved {
			return
		}
	}
}
