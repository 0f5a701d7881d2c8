package supervisor

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A guardian that may (as root, or below a cgroup that was delegated to its
// user) creates a cgroup of its own and starts its commands there. Writing to
// cgroup.kill then kills all processes of an attempt in one step, including
// those of other users. Other guardians work without a cgroup.

// ownCgroup returns the directory of this process's cgroup, or "" if the system
// has no cgroup v2 in one of the places where systemd mounts it. A cgroup of
// another namespace isn't below them.
func ownCgroup() string {
	text, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(text)) {
		path, found := strings.CutPrefix(line, "0::")
		for _, mount := range []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"} {
			if dir := filepath.Join(mount, strings.TrimSuffix(path, "\n")); found && isCgroup(dir) {
				return dir
			}
		}
	}

	return ""
}

func isCgroup(dir string) bool {
	var system unix.Statfs_t
	return unix.Statfs(dir, &system) == nil && system.Type == unix.CGROUP2_SUPER_MAGIC
}

// makeCgroup creates the guardian's cgroup if permitted. After a cgroup was
// killed, some kernels (6.18 is one) also kill every process that starts there
// later. So a guardian uses a cgroup only until it is killed.
//
// makeCgroup tests a new cgroup with a child that executes an empty path. In a
// usable cgroup that fails with ENOENT. In a killed one, the kernel kills the
// child first.
func (g *guardian) makeCgroup() {
	dir := g.lock.cgroupDir(g.slot)
	if dir == "" || os.Mkdir(dir, 0o755) != nil {
		return
	}
	if unix.Access(filepath.Join(dir, "cgroup.kill"), unix.W_OK) != nil { // before Linux 5.14
		removeCgroup(dir)
		return
	}

	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		var pid int
		sys := &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: fd}
		pid, err = syscall.ForkExec("", nil, &syscall.ProcAttr{Sys: sys})
		if err == nil { // the kernel has killed the child before its exec failed
			_, _ = unix.Wait4(pid, nil, 0, nil)
		}
	}

	g.mu.Lock()
	g.cgroupDir, g.cgroupFD, g.cgroupSpent = dir, fd, false
	g.mu.Unlock()

	if !errors.Is(err, unix.ENOENT) {
		g.closeCgroup()
	}
}

func (g *guardian) closeCgroup() {
	g.mu.Lock()
	defer g.mu.Unlock()

	if g.cgroupDir == "" {
		return
	}

	unix.Close(g.cgroupFD) // -1 if it isn't open; the call only fails then
	removeCgroup(g.cgroupDir)
	g.cgroupDir, g.cgroupSpent = "", false
}

func killCgroup(dir string) {
	_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0) // the cgroup may have been removed
}

// removeCgroup removes a cgroup and those that commands have created below it.
// It keeps one that still contains a process.
func removeCgroup(dir string) {
	if !isCgroup(dir) {
		return
	}

	var dirs []string
	_ = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return nil
	})
	for _, dir := range slices.Backward(dirs) {
		_ = os.Remove(dir)
	}
}

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
