package supervisor

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// processes returns the ids of all processes of this pid namespace, or nil if /proc cannot be read.
func processes() []int {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	return numbers(names)
}

// numbers returns the words that are numbers.
func numbers(words []string) []int {
	list := make([]int, 0, len(words))
	for _, word := range words {
		if n, err := strconv.Atoi(word); err == nil {
			list = append(list, n)
		}
	}
	return list
}

// numbersIn returns the numbers in a text that are separated by white space.
func numbersIn(text []byte) []int { return numbers(strings.Fields(string(text))) }

// children returns the children of all threads of this process, including zombies. The kernel lists a child under the
// thread that forked it. If a child forks with CLONE_PARENT, the kernel lists the new child under the same thread. It
// lists adopted children under the main thread.
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

// allChildren returns the children of this process. It scans all processes, because some kernels do not list the
// children of a thread.
func allChildren() []int {
	var pids []int
	for _, pid := range processes() {
		if parentOf(pid) == os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// statFields returns the fields of /proc/PID/stat from the state on, or nil if the process is gone.
func statFields(pid int) [][]byte {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	// The state follows the name of the process, which is in parentheses. The name itself may contain ')', so look for the last ')'.
	return bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
}

// running reports whether a process is alive and not a zombie.
func running(pid int) bool {
	field := statFields(pid)
	return len(field) > 0 && field[0][0] != 'Z' && field[0][0] != 'X'
}

// parentOf returns the parent of a process, or 0 if the process is gone.
func parentOf(pid int) int {
	field := statFields(pid)
	if len(field) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(string(field[1]))
	return parent
}

// killIf kills a process if belongs returns true, and returns ESRCH otherwise. It opens a pidfd before it calls belongs. If
// the process dies in between and the kernel gives its pid to another process, the pidfd still refers to the dead process. So no other
// process is killed.
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
	// There is no pidfd: the kernel is older than Linux 5.3, or a filter denies pidfd_open. The function "belongs" is
	// then the only protection against a reused pid.
	if err != nil {
		return unix.Kill(pid, unix.SIGKILL)
	}
	return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
}

// describeProcess returns the kernel's description of a living process.
func describeProcess(pid int) (MarkedProcess, bool) {
	field := statFields(pid)
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil || len(field) == 0 || !running(pid) {
		return MarkedProcess{}, false
	}
	p := MarkedProcess{PID: pid, State: string(field[0])}
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
