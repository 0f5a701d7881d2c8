package supervisor

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// killTimeout is how long Sweep waits for killed processes to disappear.
const killTimeout = time.Second

// Sweep kills what is left of attempts whose guardians are dead or hang: the
// processes with their marks, and those in their cgroups. lock is the path of
// the worker's lock file, whose records name the cgroups.
//
// If keys is nil, the worker and its guardians are dead. Then the attempts are
// those that the lock file records.
//
// Sweep returns true after two scans in a row, 10 ms apart, that find no living
// process. It returns false if this hasn't happened after one second and
// twenty scans. (One second alone isn't enough: on a loaded machine a single
// scan may take a tenth of a second.) It doesn't wait for processes that this
// user may not kill.
func Sweep(worker string, keys []Key, lock string) (clean bool) {
	var deadline time.Time
	for scans, emptyScans := 0, 0; emptyScans < 2; time.Sleep(10 * time.Millisecond) {
		if scans++; deadline.IsZero() {
			deadline = time.Now().Add(killTimeout)
		} else if scans > 20 && time.Now().After(deadline) {
			return false
		}

		inCgroups := killCgroups(keys, lock)
		if emptyScans++; killMarked(worker, keys, lock) || inCgroups {
			emptyScans = 0
		}
	}

	return true
}

// killMarked kills the processes with the marks of the attempts, and reports
// whether it found one.
func killMarked(worker string, keys []Key, lock string) (found bool) {
	if keys == nil {
		for _, r := range recordsOf(lock) {
			keys = append(keys, r.Key)
		}
	}

	self := os.Getpid()
	for _, pid := range processes() {
		matches := func() bool {
			m, ok := readMark(pid)
			return ok && m.Worker == worker && slices.Contains(keys, m.Key)
		}
		if pid != self && matches() && running(pid) && killIf(pid, matches) == nil {
			found = true // if the process survives the kill, the next scan finds it again
		}
	}

	return found
}

// killCgroups kills the processes in the cgroups of the attempts, and reports
// whether it found one. So it also reaches processes that hide their
// environment or belong to another user.
//
// If keys isn't nil, the guardian perhaps only hangs. It may continue at any
// moment and start its next attempt in the same cgroup, which must live. So
// killCgroups kills single processes, each after another look at the record: as
// long as a guardian's record names an attempt, its cgroup belongs to that
// attempt. Only for a process that this user may not kill does it kill the
// whole cgroup. The next attempt never shares a cgroup with such a process,
// because the guardian itself then takes a new one. That has the same name, so
// killCgroups opens the file cgroup.kill first.
func killCgroups(keys []Key, lock string) (found bool) {
	for _, r := range recordsOf(lock) {
		if r.cgroup == "" || keys != nil && !slices.Contains(keys, r.Key) {
			continue
		}

		kill, err := os.OpenFile(filepath.Join(r.cgroup, "cgroup.kill"), os.O_WRONLY, 0)
		if err != nil {
			continue
		}

		for _, pid := range membersOf(r.cgroup) {
			err := error(unix.EPERM)
			if keys != nil {
				err = killIf(pid, func() bool {
					return slices.Contains(membersOf(r.cgroup), pid) && slices.Contains(recordsOf(lock), r)
				})
			}
			if errors.Is(err, unix.EPERM) {
				_, err = kill.WriteString("1") // fails if the cgroup was removed meanwhile
			}
			found = found || err == nil
		}

		kill.Close()
	}

	return found
}

// membersOf returns the processes of a cgroup and of the cgroups below it,
// which commands may create. The kernel shows processes of other pid namespaces
// as 0.
func membersOf(cgroup string) (pids []int) {
	_ = filepath.WalkDir(cgroup, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			text, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
			pids = append(pids, numbersIn(text)...)
		}
		return nil
	})
	return slices.DeleteFunc(pids, func(pid int) bool { return pid == 0 })
}

// FindMarked returns the living processes that have the mark of an attempt and
// whose environment this user may read.
func FindMarked() (found []MarkedProcess) {
	for _, pid := range processes() {
		if m, ok := readMark(pid); ok {
			if p, ok := describeProcess(pid); ok {
				p.Mark = m
				found = append(found, p)
			}
		}
	}
	return found
}

// readMark reads the mark of a process. It returns false if the process has
// none, hides its environment or is gone.
func readMark(pid int) (m Mark, ok bool) {
	environ := environOf(pid)
	if !bytes.Contains(environ, []byte(workerVariable)) {
		return m, false
	}

	for variable := range bytes.SplitSeq(environ, []byte{0}) {
		name, value, _ := bytes.Cut(variable, []byte("="))
		switch string(name) {
		case workerVariable:
			m.Worker = string(value)
		case taskVariable:
			m.ID, _ = strconv.ParseInt(string(value), 10, 64)
		case generationVariable:
			m.Generation, _ = strconv.ParseInt(string(value), 10, 64)
		}
	}

	return m, m.Worker != "" && m.Key != Key{}
}

// environOf reads the environment of a process.
//
// During execve the kernel shows an empty one, and an empty command line, too.
// So environOf reads an empty environment again, after 1 ms as long as there
// is no command line. A process that really has no environment (env -i) has a
// command line, so it costs a few reads. A kernel thread and a zombie have no
// program and cost one.
func environOf(pid int) []byte {
	proc := "/proc/" + strconv.Itoa(pid)
	for settled, waits := 0, 0; settled < 5 && waits < 1000; {
		environ, err := readAtOnce(proc + "/environ")
		if err != nil || len(environ) > 0 {
			return environ
		}
		if _, err := os.Readlink(proc + "/exe"); err != nil {
			return nil
		}

		if line, _ := os.ReadFile(proc + "/cmdline"); len(line) > 0 {
			settled++
		} else {
			waits++
			time.Sleep(time.Millisecond)
		}
	}

	return nil
}

// readAtOnce reads a file by one call of the kernel. After an execve between
// two calls the second would find the end of the file.
func readAtOnce(path string) ([]byte, error) {
	for size := 16 << 10; ; size *= 2 {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}

		text := make([]byte, size)
		n, err := f.Read(text)
		f.Close()
		switch {
		case errors.Is(err, io.EOF):
			return nil, nil
		case err != nil || n < size:
			return text[:n], err
		}
	}
}

// ResumeGuardians sends CONT to a worker's stopped guardians, if the worker's
// process is gone. They notice that, kill their commands and exit, which frees
// the worker's lock. ResumeGuardians reports whether it found a guardian.
func ResumeGuardians(worker string, pid int) (found bool) {
	if running(pid) {
		return false
	}

	for _, pid := range processes() {
		if state, _ := statOf(pid); state != 'T' {
			continue // without reading its arguments, which may block if the kernel holds its memory
		}

		line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
		words := bytes.Split(line, []byte{0})
		if len(words) > 2 && string(words[1]) == guardianArg && string(words[2]) == worker {
			found = true
			_ = unix.Kill(pid, unix.SIGCONT) // fails for a guardian of another user
		}
	}

	return found
}
