package supervisor

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// A guardian has a cgroup of its own where it may make one: as root, or below a cgroup that was delegated to its user. Its commands are
// started in there. cgroup.kill then kills all of an attempt in one step, and processes of other users as well. A guardian that may not make
// a cgroup goes on without.

// ownCgroup returns the directory of this process's cgroup; empty if the system has no cgroup v2.
func ownCgroup() string {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	own := ""
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			own = strings.TrimSuffix(path, "\n")
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || own == "" {
		return ""
	}
	for line := range strings.Lines(string(mounts)) {
		field := strings.Fields(line)
		kind := slices.Index(field, "-") + 1
		if kind < 7 || kind >= len(field) || field[kind] != "cgroup2" || strings.Contains(field[4], `\`) {
			continue
		}
		if below, err := filepath.Rel(field[3], own); err == nil && filepath.IsLocal(below) { // field 3 is the part of the hierarchy that is mounted
			return filepath.Join(field[4], below)
		}
	}
	return ""
}

// makeCgroup makes the cgroup of a guardian, if it may. Some kernels (6.18 is one) kill a process at its birth when it is started into a cgroup
// that was killed before, or out of one. So a cgroup is used until it is killed, and tried first.
func (g *guardian) makeCgroup() {
	dir := g.lock.cgroupDir(g.slot)
	if dir == "" || os.Mkdir(dir, 0o755) != nil {
		return
	}
	fd := -1
	err := unix.Access(filepath.Join(dir, "cgroup.kill"), unix.W_OK) // since Linux 5.14
	if err == nil {
		fd, err = unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	}
	if err == nil {
		var pid int
		pid, err = syscall.ForkExec("", nil, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: fd}})
		if err == nil { // it died before it could say that there is no such program
			_, _ = unix.Wait4(pid, nil, 0, nil)
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cgroupDir, g.cgroupFD, g.cgroupKilled = dir, fd, false; err != unix.ENOENT {
		g.closeCgroupLocked()
	}
}

// closeCgroup removes the cgroup of a guardian.
func (g *guardian) closeCgroup() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.cgroupDir != "" {
		g.closeCgroupLocked()
	}
}

// closeCgroupLocked is closeCgroup with the mutex held.
func (g *guardian) closeCgroupLocked() {
	unix.Close(g.cgroupFD) // -1 if it was not opened
	removeCgroup(g.cgroupDir)
	g.cgroupDir, g.cgroupKilled = "", false
}

// killCgroup kills all processes of a cgroup, and of those below it.
func killCgroup(dir string) {
	_ = os.WriteFile(filepath.Join(dir, "cgroup.kill"), []byte("1"), 0) // it may be gone
}

// removeCgroup removes a cgroup, and those that commands have made below it. One in which something lives stays.
func removeCgroup(dir string) {
	var system unix.Statfs_t
	if unix.Statfs(dir, &system) != nil || system.Type != unix.CGROUP2_SUPER_MAGIC {
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

// numbersIn returns the numbers of a text that are separated by white space.
func numbersIn(text []byte) []int {
	return numbers(strings.Fields(string(bytes.TrimSpace(text))))
}
