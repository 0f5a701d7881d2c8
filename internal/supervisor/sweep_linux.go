package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// killTimeout is how long Sweep waits for killed processes to disappear.
const killTimeout = time.Second

// Sweep kills the remaining processes of commands of a worker whose guardians are dead or hang. If keys is nil, it kills the processes of
// all attempts, and otherwise only those of the attempts in keys. It finds the processes by their marks (see Mark). The records come from
// the worker's lock file and name the cgroups of the attempts.
//
// Sweep returns true after two scans in a row, 10 ms apart, that find no living process. It returns false if this has not happened after
// one second and twenty scans. One second alone is not enough: on a loaded machine a single scan may take a tenth of a second. Sweep does
// not wait for processes of other users that it is not permitted to kill, and returns them.
func Sweep(worker string, keys []Key, records []Record) (denied []MarkedProcess, clean bool) {
	s := sweep{worker: worker, keys: keys}
	for scans, emptyScans := 0, 0; emptyScans < 2; time.Sleep(10 * time.Millisecond) {
		if scans++; s.deadline.IsZero() {
			s.deadline = time.Now().Add(killTimeout)
		} else if scans > 20 && time.Now().After(s.deadline) {
			return s.denied, false
		}
		killed := false
		for _, r := range records {
			killed = s.killCgroup(r) || killed
		}
		if emptyScans++; s.killMatching() || killed {
			emptyScans = 0
		}
	}
	return s.denied, true
}

type sweep struct {
	worker   string
	keys     []Key // attempts whose processes must be killed; nil for all attempts of the worker
	deadline time.Time
	denied   []MarkedProcess // processes that the last scan was not permitted to kill
}

// matches reports whether a process with the mark m must be killed.
func (s *sweep) matches(m Mark) bool {
	if s.keys == nil {
		return m.valid() && m.OwnedBy(s.worker)
	}
	return slices.ContainsFunc(s.keys, func(k Key) bool { return m == MarkOf(s.worker, k) })
}

// killMatching checks each process once and kills those that match. It reports whether it found a process that it may
// kill.
func (s *sweep) killMatching() (found bool) {
	s.denied = nil
	self := os.Getpid()
	for _, pid := range processes() {
		if pid == self || !s.matches(readMark(pid)) || !running(pid) {
			continue
		}
		switch err := killIf(pid, func() bool { return s.matches(readMark(pid)) }); {
		case errors.Is(err, unix.ESRCH):
		case errors.Is(err, unix.EPERM):
			if p, ok := describeProcess(pid, readMark(pid)); ok {
				s.denied = append(s.denied, p)
			}
		default: // if the process survives the kill, the next scan finds it again
			found = true
		}
	}
	return found
}

// killCgroup kills the cgroup of a record if the cgroup contains a process that must be killed. Processes of other
// users die, too.
//
// If Sweep was called with keys, the worker and its guardian are perhaps not dead: they may hang, and continue at any moment. The guardian
// may then start its next attempt in the same cgroup, and killCgroup must not kill that attempt. So with keys, killCgroup kills the cgroup
// only if it contains a process that killIf was not permitted to kill. The next attempt never shares a cgroup with such a process: before
// the next attempt, the guardian itself kills the cgroup and creates another one.
//
// killCgroup opens the file cgroup.kill before it checks the processes. If the guardian creates a new cgroup with the same name meanwhile,
// the open file still refers to the old cgroup.
func (s *sweep) killCgroup(r Record) (killed bool) {
	if r.Cgroup == "" {
		return false
	}
	kill, err := os.OpenFile(filepath.Join(r.Cgroup, "cgroup.kill"), os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	defer kill.Close()
	text, _ := os.ReadFile(filepath.Join(r.Cgroup, "cgroup.procs"))
	if !slices.ContainsFunc(numbersIn(text), s.cgroupMatches) {
		return false
	}
	_, err = kill.WriteString("1")
	return err == nil // the write fails if the cgroup was removed meanwhile
}

func (s *sweep) cgroupMatches(pid int) bool {
	if s.keys == nil {
		return s.matches(readMark(pid))
	}
	return slices.ContainsFunc(s.denied, func(m MarkedProcess) bool { return m.PID == pid })
}

// FindMarked returns the living processes that have the mark of an attempt.
func FindMarked() []MarkedProcess {
	return findMarked(Mark.valid)
}

func findMarked(wanted func(Mark) bool) (found []MarkedProcess) {
	for _, pid := range processes() {
		if m := readMark(pid); wanted(m) {
			if p, ok := describeProcess(pid, m); ok {
				found = append(found, p)
			}
		}
	}
	return found
}
