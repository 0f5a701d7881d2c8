package supervisor

import (
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Sweep kills what is left of the commands of a worker whose guardians are dead or hang: of all of them, or of those that keys name. It finds
// processes by their marks; records are what the worker's lock file holds, which leads to their cgroups.
//
// It returns true when two scans in a row, 10 ms apart, have found nothing alive, and false when that has not come about in a second and in
// twenty scans: beside much other load a look takes a tenth of a second, and so does dying. Sweep does not wait for processes of other users
// that this user may not kill: it returns them.
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
	keys     []Key // nil: all
	deadline time.Time
	denied   []MarkedProcess // seen by the last pass
}

// wanted says whether a process belongs to what is swept.
func (s *sweep) matches(m Mark) bool {
	if s.keys == nil {
		return m.valid() && m.OwnedBy(s.worker)
	}
	return slices.ContainsFunc(s.keys, func(k Key) bool { return m == MarkOf(s.worker, k) })
}

// pass scans at each process once, kills what is wanted, and returns whether it found anything that it may kill.
func (s *sweep) killMatching() (found bool) {
	s.denied = nil
	self := os.Getpid()
	for _, pid := range processes() {
		if pid == self || !s.matches(readMark(pid)) || !running(pid) {
			continue
		}
		switch err := killIf(pid, func() bool { return s.matches(readMark(pid)) }); err {
		case unix.ESRCH:
		case unix.EPERM:
			if p, ok := describeProcess(pid, readMark(pid)); ok {
				s.denied = append(s.denied, p)
			}
		default: // a process that stays is seen by the next pass
			found = true
		}
	}
	return found
}

// killCgroup kills the cgroup of a record whose processes are wanted: those of other users, too. The guardian of a worker that only hangs may
// go on any moment, and start another attempt in its cgroup, which must not be hit. So a cgroup of such a worker is killed only for what
// killIf may not kill: a guardian that finds that beside its next attempt kills the cgroup itself, and makes another. cgroup.kill is opened
// first, since that other one has the same name.
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
	return err == nil // the cgroup may be gone
}

func (s *sweep) cgroupMatches(pid int) bool {
	if s.keys == nil {
		return s.matches(readMark(pid))
	}
	return slices.ContainsFunc(s.denied, func(m MarkedProcess) bool { return m.PID == pid })
}

// FindMarked lists the living processes that have the mark of an attempt.
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
