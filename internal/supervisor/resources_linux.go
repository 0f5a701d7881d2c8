package supervisor

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// A guardian applies the resources of a command in three ways:
//
//   - The kernel sets the user between fork and exec.
//   - Niceness and disk priority belong to a thread, and children inherit them.
//     An unprivileged thread can't return to a higher priority. So such a
//     command is forked on a separate thread, which ends with the attempt.
//   - The guardian's cgroup limits memory and CPU time of all processes
//     together. First the worker must enable the controllers for the cgroups
//     below its own (prepareLimits).

// credential returns the user and the groups that a command gets; nil for those
// of this process.
func (u *User) credential() *syscall.Credential {
	if u == nil {
		return nil
	}

	c := &syscall.Credential{Uid: uint32(u.UID), Gid: uint32(u.GID)}
	for _, id := range u.Groups {
		c.Groups = append(c.Groups, uint32(id))
	}

	return c
}

// forkWith forks a command with its niceness and its disk priority.
func forkWith(a *attempt, fork func() (int, error)) (pid int, err error) {
	if a.Nice == 0 && a.IOPriority == 0 {
		return fork()
	}

	forked := make(chan struct{})
	go func() {
		runtime.LockOSThread() // the thread ends with this goroutine, because nothing unlocks it
		if err = setPriorities(a.Resources); err == nil {
			pid, err = fork()
		}
		running := err == nil
		close(forked)
		if running {
			<-a.over // keep this thread: when it ends, the kernel kills the command (Pdeathsig)
		}
	}()
	<-forked
	return pid, err
}

// setPriorities sets the niceness and the disk priority of the calling thread.
func setPriorities(r Resources) error {
	const whoProcess = 1 // IOPRIO_WHO_PROCESS; the id 0 is the calling thread
	if r.Nice != 0 {
		if err := unix.Setpriority(unix.PRIO_PROCESS, 0, r.Nice); err != nil {
			return &ResourceError{"nice", err}
		}
	}
	if r.IOPriority != 0 {
		_, _, errno := unix.Syscall(unix.SYS_IOPRIO_SET, whoProcess, 0, uintptr(r.IOPriority))
		if errno != 0 {
			return &ResourceError{"ionice", errno}
		}
	}

	return nil
}

// cpuPeriod is over how many microseconds the kernel measures the CPU time of a
// cgroup.
const cpuPeriod = 100_000

// swapFile doesn't exist if the kernel doesn't count swap.
const swapFile = "memory.swap.max"

// cgroupLimit is a limit that a file of a cgroup sets. Its controller has the
// name of the resource.
type cgroupLimit struct {
	resource, file, value string
}

// cgroupLimits lists the limits that a command needs. Swap counts as memory,
// and past the limit the kernel kills all processes of the cgroup.
func (r Resources) cgroupLimits() (list []cgroupLimit) {
	if r.Memory > 0 {
		list = append(list,
			cgroupLimit{"memory", "memory.max", strconv.FormatInt(r.Memory, 10)},
			cgroupLimit{"memory", "memory.oom.group", "1"},
			cgroupLimit{"memory", swapFile, "0"})
	}
	if r.CPU > 0 {
		quota := fmt.Sprintf("%d %d", r.CPU*(cpuPeriod/100), cpuPeriod)
		list = append(list, cgroupLimit{"cpu", "cpu.max", quota})
	}

	return list
}

func (g *guardian) applyLimits(r Resources) error {
	for _, limit := range r.cgroupLimits() {
		g.mu.Lock()
		g.cgroupSpent = true
		g.mu.Unlock()

		err := writeCgroup(g.cgroupDir, limit.file, limit.value)
		if err != nil && (g.cgroupDir == "" || limit.file != swapFile || !errors.Is(err, fs.ErrNotExist)) {
			return &ResourceError{limit.resource, err}
		}
	}

	return nil
}

// writeCgroup writes a file of a cgroup. Without a cgroup it returns an error.
func writeCgroup(dir, name, value string) error {
	if dir == "" {
		return unix.ENOENT
	}

	// os.WriteFile would add O_CREATE and O_TRUNC
	file, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY, 0)
	if err != nil {
		return err
	}

	_, err = file.WriteString(value)
	return errors.Join(err, file.Close())
}

// oomKills returns how many processes of a cgroup the memory limit has killed.
func oomKills(dir string) int {
	text, _ := os.ReadFile(filepath.Join(dir, "memory.events"))
	for line := range strings.Lines(string(text)) {
		if n, ok := strings.CutPrefix(line, "oom_kill "); ok {
			kills, _ := strconv.Atoi(strings.TrimSpace(n))
			return kills
		}
	}

	return 0
}

// preparing is held while prepareLimits changes cgroups.
var preparing sync.Mutex

// prepareLimits enables the controllers that the limits in r need, for the
// guardians' cgroups. A cgroup with processes can't have controllers for those
// below it. So this process and its children move to a new cgroup below their
// own.
func (l *Lock) prepareLimits(r Resources) error {
	limits := r.cgroupLimits()
	if len(limits) == 0 {
		return nil
	}

	preparing.Lock()
	defer preparing.Unlock()

	for _, limit := range limits {
		err := errors.New("this worker has no control group (cgroup v2)")
		if l.cgroups != "" {
			err = enableController(filepath.Dir(l.cgroups), l.cgroups+"worker", limit.resource)
		}
		if err != nil {
			return &ResourceError{limit.resource, err}
		}
	}

	return nil
}

// enableController enables a controller for the cgroups below dir. If
// necessary, it moves this process and its children to the cgroup leaf.
func enableController(dir, leaf, controller string) error {
	has := func(file string) bool {
		text, _ := os.ReadFile(filepath.Join(dir, file))
		return slices.Contains(strings.Fields(string(text)), controller)
	}
	if has("cgroup.subtree_control") {
		return nil
	}
	if !has("cgroup.controllers") {
		return fmt.Errorf("the control group %s has no controller %s, as on a machine with cgroup v1",
			dir, controller)
	}

	// A process may start in dir between leaveCgroup and writeCgroup. The
	// kernel then refuses to enable memory, but enables cpu. In both cases the
	// next round moves the new process.
	err := error(unix.EBUSY)
	for range 10 {
		moved, failed := leaveCgroup(dir, leaf)
		if failed != nil {
			return failed
		}
		if err == nil && !moved {
			return nil
		}

		err = writeCgroup(dir, "cgroup.subtree_control", "+"+controller)
		if err != nil && !errors.Is(err, unix.EBUSY) {
			break
		}
	}

	return fmt.Errorf("the control group %s was not delegated to this worker: %w",
		dir, cmp.Or(err, error(unix.EBUSY)))
}

// leaveCgroup moves this process and its children from the cgroup dir to the
// cgroup leaf, and reports whether there was anything to move. It fails if dir
// has other processes. Nothing has to leave the root cgroup, which may have
// processes and enable controllers at the same time.
func leaveCgroup(dir, leaf string) (moved bool, err error) {
	if unix.Access(filepath.Join(dir, "cgroup.type"), unix.F_OK) != nil { // only the root has no such file
		return false, nil
	}

	text, err := os.ReadFile(filepath.Join(dir, "cgroup.procs"))
	pids := numbersIn(text)
	if err != nil || len(pids) == 0 {
		return false, err
	}

	for _, pid := range pids {
		// 0 if the process has ended
		if parent := parentOf(pid); pid != os.Getpid() && parent != os.Getpid() && parent != 0 {
			return false, fmt.Errorf("the control group %s has other processes, such as %d", dir, pid)
		}
	}

	if err := os.Mkdir(leaf, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return false, err
	}

	for _, pid := range pids {
		err := writeCgroup(leaf, "cgroup.procs", strconv.Itoa(pid))
		if err != nil && !errors.Is(err, unix.ESRCH) {
			return false, err
		}
	}

	return true, nil
}
