package supervisor

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// processes returns the ids of all processes of this pid namespace, or nil if
// /proc can't be read.
func processes() []int {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()

	names, _ := proc.Readdirnames(-1)
	return numbers(names)
}

func numbers(words []string) []int {
	list := make([]int, 0, len(words))
	for _, word := range words {
		if n, err := strconv.Atoi(word); err == nil {
			list = append(list, n)
		}
	}
	return list
}

// numbersIn returns the numbers in a text, which white space separates.
func numbersIn(text []byte) []int { return numbers(strings.Fields(string(text))) }

// children returns the children of all threads of this process, with zombies.
// The kernel lists a child under the thread that forked it, one that a child
// forks with CLONE_PARENT under the same, and adopted children under the main
// thread.
func children() []int {
	threads, err := os.ReadDir("/proc/self/task")
	if err != nil {
		return nil
	}

	var pids []int
	for _, thread := range threads {
		text, err := os.ReadFile("/proc/self/task/" + thread.Name() + "/children")
		if err != nil && thread.Name() == strconv.Itoa(os.Getpid()) {
			return allChildren()
		}
		pids = append(pids, numbersIn(text)...)
	}

	return pids
}

// allChildren finds the children of this process among all processes, because
// some kernels don't list the children of a thread.
func allChildren() []int {
	var pids []int
	for _, pid := range processes() {
		if parentOf(pid) == os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// statOf returns a process's state, as a letter, and its parent, from
// /proc/PID/stat. Both are 0 if the process is gone.
func statOf(pid int) (state byte, parent int) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	// The state follows the name of the process, which is in parentheses and
	// may itself contain one.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if err != nil || len(fields) < 2 {
		return 0, 0
	}

	parent, _ = strconv.Atoi(string(fields[1]))
	return fields[0][0], parent
}

// running reports whether a process is alive and not a zombie.
func running(pid int) bool {
	state, _ := statOf(pid)
	return state != 0 && state != 'Z' && state != 'X'
}

// parentOf returns the parent of a process, or 0 if the process is gone.
func parentOf(pid int) int {
	_, parent := statOf(pid)
	return parent
}

// killIf kills a process if belongs returns true, and returns ESRCH otherwise.
// It opens a pidfd first. If the process dies before the kill and its pid is
// reused, the pidfd still refers to the dead one, so no other process is
// killed.
func killIf(pid int, belongs func() bool) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		return err
	}
	if err == nil {
		defer unix.Close(fd)
	}
	if !belongs() {
		return unix.ESRCH
	}

	// Without a pidfd (before Linux 5.3, or if a filter denies it), belongs is
	// our only guard against pid reuse.
	if err != nil {
		return unix.Kill(pid, unix.SIGKILL)
	}

	return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
}

// describeProcess returns the kernel's description of a living process.
func describeProcess(pid int) (MarkedProcess, bool) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	state, _ := statOf(pid)
	if err != nil || !running(pid) {
		return MarkedProcess{}, false
	}

	p := MarkedProcess{PID: pid, State: string(state)}
	for line := range strings.Lines(string(status)) {
		if name, ok := strings.CutPrefix(line, "Name:"); ok {
			p.Name = strings.TrimSpace(name)
		} else if ids, ok := strings.CutPrefix(line, "Uid:"); ok {
			p.UID = numbers(strings.Fields(ids)[:1])[0]
			break
		}
	}

	return p, true
}
