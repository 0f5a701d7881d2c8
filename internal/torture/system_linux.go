package torture

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

const supported = true

// monotonic reads CLOCK_MONOTONIC in µs: the clock that all processes share and nobody can set.
func monotonic() int64 {
	var at syscall.Timespec
	const clock = 1                                                                              // CLOCK_MONOTONIC
	_, _, _ = syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&at)), 0) // cannot fail
	return at.Nano() / 1000
}

// seize takes the lock of a task: one byte of a file, locked for as long as any process holds the open file. held: somebody else does.
func seize(path string, task int64) (file *os.File, held bool, err error) {
	if file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, false, err
	}
	const setOFDLock = 37 // F_OFD_SETLK: of the open file, not of the process
	lock := syscall.Flock_t{Type: syscall.F_WRLCK, Start: task, Len: 1}
	switch err = syscall.FcntlFlock(file.Fd(), setOFDLock, &lock); {
	case errors.Is(err, syscall.EAGAIN), errors.Is(err, syscall.EACCES):
		file.Close()
		return nil, true, nil
	case err != nil:
		file.Close()
		return nil, false, err
	}
	return file, false, nil
}

func send(pid int, s syscall.Signal) error {
	if pid <= 1 {
		return errors.New("no process")
	}
	return syscall.Kill(pid, s)
}

func kill(pid int) error      { return send(pid, syscall.SIGKILL) }
func stop(pid int) error      { return send(pid, syscall.SIGSTOP) }
func goOn(pid int) error      { return send(pid, syscall.SIGCONT) }
func terminate(pid int) error { return send(pid, syscall.SIGTERM) }

func ignoreTerminate() { signal.Ignore(syscall.SIGTERM) }

// The ways in which a child of a command is started, each harder to find than the one before.
var shapes = []func(*exec.Cmd){
	func(*exec.Cmd) {}, // in the background
	func(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} },          // by a shell with job control
	func(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} },           // setsid
	func(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}; twice(c) }, // setsid -f
	func(c *exec.Cmd) { twice(c) }, // double fork
	func(c *exec.Cmd) {
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		c.Env = []string{}
		c.ExtraFiles = nil
	}, // env -i setsid
}

// twice makes the child start another and end.
func twice(c *exec.Cmd) { c.Args = append(c.Args, "again") }

// diskSpace returns the bytes of a disk that are free, and all.
func diskSpace(dir string) (free, total int64) {
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) != nil {
		return 0, 0
	}
	return int64(fs.Bavail) * int64(fs.Bsize), int64(fs.Blocks) * int64(fs.Bsize) //nolint:unconvert // it has other types elsewhere
}

// reserve takes room on the disk for what a file will hold, if the disk has it. Its size stays.
func reserve(file *os.File, bytes int64) {
	const keepSize = 1 // FALLOC_FL_KEEP_SIZE
	_ = syscall.Fallocate(int(file.Fd()), keepSize, 0, bytes)
}

// spawner starts processes that die with this one: on one thread, since the kernel counts by the thread that forked.
type spawner struct{ jobs chan func() }

func newSpawner() *spawner {
	s := &spawner{jobs: make(chan func())}
	go func() {
		runtime.LockOSThread()
		for job := range s.jobs {
			job()
		}
	}()
	return s
}

func (s *spawner) start(c *exec.Cmd) (err error) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	done := make(chan struct{})
	s.jobs <- func() {
		err = c.Start()
		close(done)
	}
	<-done
	return err
}

// parentOf returns the parent of a process and its name; 0 if it is gone.
func parentOf(pid int) (parent int, name string) {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, ""
	}
	open, shut := bytes.IndexByte(stat, '('), bytes.LastIndexByte(stat, ')')
	field := strings.Fields(string(stat[shut+1:])) // state, parent
	if len(field) < 2 || field[0] == "Z" || field[0] == "X" {
		return 0, ""
	}
	parent, _ = strconv.Atoi(field[1])
	return parent, string(stat[open+1 : shut])
}

// processes lists all pids.
func processes() []int {
	entries, _ := os.ReadDir("/proc")
	pids := make([]int, 0, len(entries))
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// guardiansOf returns the guardians of a worker.
func guardiansOf(worker int) (pids []int) {
	for _, pid := range processes() {
		if parent, name := parentOf(pid); parent == worker && name == "guardian" {
			pids = append(pids, pid)
		}
	}
	return pids
}

// tag is what the environment of a command's process says.
type tag struct {
	pid              int
	worker           string
	task, generation int64
}

// tagged lists the living processes of commands whose environment names a database by one of its addresses.
func tagged(databases ...string) []tag {
	var list []tag
	for _, pid := range processes() {
		environ, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		if !slices.ContainsFunc(databases, func(d string) bool { return bytes.Contains(environ, []byte("RUNNER_DB="+d+"\x00")) }) {
			continue
		}
		t := tag{pid: pid}
		for v := range bytes.SplitSeq(environ, []byte{0}) {
			name, value, _ := strings.Cut(string(v), "=")
			switch name {
			case "RUNNER_WORKER_ID":
				t.worker = value
			case "RUNNER_TASK_ID":
				t.task, _ = strconv.ParseInt(value, 10, 64)
			case "RUNNER_TASK_GENERATION":
				t.generation, _ = strconv.ParseInt(value, 10, 64)
			}
		}
		if parent, _ := parentOf(pid); parent != 0 && t.worker != "" { // a zombie is dead
			list = append(list, t)
		}
	}
	return list
}

// within lists the living processes whose command line names a directory.
func within(dir string) []int {
	var list []int
	for _, pid := range processes() {
		line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if parent, _ := parentOf(pid); parent != 0 && pid != os.Getpid() && bytes.Contains(line, []byte(dir+"\x00")) {
			list = append(list, pid)
		}
	}
	return list
}
