package harness

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"
)

const supported = true

// monotonic reads CLOCK_MONOTONIC in µs. All processes share this clock and
// nobody can set it.
func monotonic() int64 {
	var at syscall.Timespec
	const clock = 1                                                                              // CLOCK_MONOTONIC
	_, _, _ = syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&at)), 0) // this call can't fail
	return at.Nano() / 1000
}

// lockTask takes a task's lock, on one byte of a file. It lasts until no
// process has that open file any more. held is true if another execution has
// the lock.
func lockTask(path string, task int64) (file *os.File, held bool, err error) {
	if file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, false, err
	}

	const setOFDLock = 37 // F_OFD_SETLK: the lock belongs to the open file, not to the process
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
func resume(pid int) error    { return send(pid, syscall.SIGCONT) }
func terminate(pid int) error { return send(pid, syscall.SIGTERM) }

func ignoreTerminate() { signal.Ignore(syscall.SIGTERM) }

// diskSpace returns the free bytes of a disk and its size.
func diskSpace(dir string) (free, total int64) {
	var fs syscall.Statfs_t
	if syscall.Statfs(dir, &fs) != nil {
		return 0, 0
	}
	return int64(fs.Bavail) * int64(fs.Bsize), int64(fs.Blocks) * int64(fs.Bsize) //nolint:unconvert // other systems have other types
}

// reserve allocates disk space for a file without changing its size, if the
// disk has the space.
func reserve(file *os.File, bytes int64) {
	const keepSize = 1 // FALLOC_FL_KEEP_SIZE
	_ = syscall.Fallocate(int(file.Fd()), keepSize, 0, bytes)
}

// spawner starts processes that the kernel kills when this process dies. It
// starts all of them on one thread, because the kernel kills them when the
// thread that forked them ends.
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
	if c.SysProcAttr == nil {
		c.SysProcAttr = &syscall.SysProcAttr{}
	}

	c.SysProcAttr.Setpgid, c.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
	done := make(chan struct{})
	s.jobs <- func() {
		err = c.Start()
		close(done)
	}
	<-done
	return err
}

// end stops the thread of the spawner. The kernel then kills all processes that
// the spawner started.
func (s *spawner) end() { close(s.jobs) }

// parentOf returns the parent and the name of a process, or 0 if the process is
// dead.
func parentOf(pid int) (parent int, name string) {
	name, field := stat(pid)
	if len(field) == 0 {
		return 0, ""
	}
	parent, _ = strconv.Atoi(field[1])
	return parent, name
}

// startTime returns the start of a process in ticks since boot, or 0 if the
// process is dead. The pid and the start time identify a process.
func startTime(pid int) int64 {
	_, field := stat(pid)
	if len(field) == 0 {
		return 0
	}
	at, _ := strconv.ParseInt(field[19], 10, 64)
	return at
}

// stat returns the name of a living process and the fields after it in
// /proc/PID/stat: state, parent and so on.
func stat(pid int) (name string, field []string) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return "", nil
	}

	open, shut := bytes.IndexByte(text, '('), bytes.LastIndexByte(text, ')')
	field = strings.Fields(string(text[shut+1:]))
	if len(field) < 20 || field[0] == "Z" || field[0] == "X" { // a zombie is dead
		return "", nil
	}

	return string(text[open+1 : shut]), field
}

// allPIDs lists the pids of all processes of the machine.
func allPIDs() []int {
	entries, _ := os.ReadDir("/proc")
	pids := make([]int, 0, len(entries))
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			pids = append(pids, pid)
		}
	}

	return pids
}

// processesOf lists the living processes whose command line contains dir.
func processesOf(dir string) []int {
	var list []int
	for _, pid := range allPIDs() {
		line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		if parent, _ := parentOf(pid); parent != 0 && pid != os.Getpid() && bytes.Contains(line, []byte(dir+"\x00")) {
			list = append(list, pid)
		}
	}

	return list
}
