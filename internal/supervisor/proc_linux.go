package supervisor

import (
	"bytes"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// processes lists all processes of this pid namespace; none if /proc cannot be read.
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

// children lists the children of all threads of this process, zombies included. A thread has the processes that it forked, and those that
// its children forked with CLONE_PARENT; the main thread has the adopted ones.
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
		pids = append(pids, numbers(strings.Fields(string(text)))...)
	}
	return pids
}

// allChildren is for kernels that do not list the children of a thread.
func allChildren() []int {
	var pids []int
	for _, pid := range processes() {
		if parentOf(pid) == os.Getpid() {
			pids = append(pids, pid)
		}
	}
	return pids
}

// statFields returns the fields of a process's stat from the state on; nil if it is gone.
func statFields(pid int) [][]byte {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	return bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]) // the name may hold anything
}

// running tells a living process from a zombie, whose parent has not waited for it yet.
func running(pid int) bool {
	field := statFields(pid)
	return len(field) > 0 && field[0][0] != 'Z' && field[0][0] != 'X'
}

// parentOf returns the parent of a process; 0 if it is gone.
func parentOf(pid int) int {
	field := statFields(pid)
	if len(field) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(string(field[1]))
	return parent
}

// killIf kills pid if the belongs holds, else it returns ESRCH. It opens a handle before it asks for the belongs: if the number has
// changed hands by then, the handle is that of a dead process and no stranger is hit.
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
	if err != nil { // before Linux 5.3, or filtered: the look a moment ago must do
		return unix.Kill(pid, unix.SIGKILL)
	}
	return unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
}

// describeProcess returns what the kernel says about a living process with a mark.
func describeProcess(pid int, m Mark) (MarkedProcess, bool) {
	field := statFields(pid)
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil || len(field) == 0 || !running(pid) {
		return MarkedProcess{}, false
	}
	p := MarkedProcess{PID: pid, State: string(field[0]), Mark: m}
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
