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
// It returns true when two looks in a row, 10 ms apart, have found nothing alive, and false when that has not come about in a second and in
// twenty looks: beside much other load a look takes a tenth of a second, and so does dying. Sweep does not wait for processes of other users
// that this user may not kill: it returns them.
func Sweep(worker string, keys []Key, records []Record) (denied []Marked, clean bool) {
	s := sweeping{worker: worker, keys: keys}
	for looks, still := 0, 0; still < 2; time.Sleep(10 * time.Millisecond) {
		if looks++; s.end.IsZero() {
			s.end = time.Now().Add(patience)
		} else if looks > 20 && time.Now().After(s.end) {
			return s.denied, false
		}
		killed := false
		for _, r := range records {
			killed = s.killCgroup(r) || killed
		}
		if still++; s.pass() || killed {
			still = 0
		}
	}
	return s.denied, true
}

type sweeping struct {
	worker string
	keys   []Key // nil: all
	end    time.Time
	denied []Marked // seen by the last pass
}

// wanted says whether a process belongs to what is swept.
func (s *sweeping) wanted(m Mark) bool {
	if s.keys == nil {
		return m.valid() && m.Of(s.worker)
	}
	return slices.ContainsFunc(s.keys, func(k Key) bool { return m == MarkOf(s.worker, k) })
}

// pass looks at each process once, kills what is wanted, and returns whether it found anything that it may kill.
func (s *sweeping) pass() (found bool) {
	s.denied = nil
	self := os.Getpid()
	for _, pid := range processes() {
		if pid == self || !s.wanted(markOf(pid)) || !running(pid) {
			continue
		}
		switch err := strike(pid, func() bool { return s.wanted(markOf(pid)) }); err {
		case unix.ESRCH:
		case unix.EPERM:
			if p, ok := describe(pid, markOf(pid)); ok {
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
// strike may not kill: a guardian that finds that beside its next attempt kills the cgroup itself, and makes another. cgroup.kill is opened
// first, since that other one has the same name.
func (s *sweeping) killCgroup(r Record) (killed bool) {
	if r.Cgroup == "" {
		return false
	}
	kill, err := os.OpenFile(filepath.Join(r.Cgroup, "cgroup.kill"), os.O_WRONLY, 0)
	if err != nil {
		return false
	}
	defer kill.Close()
	text, _ := os.ReadFile(filepath.Join(r.Cgroup, "cgroup.procs"))
	if !slices.ContainsFunc(numbersIn(text), s.cgroupWanted) {
		return false
	}
	_, err = kill.WriteString("1")
	return err == nil // the cgroup may be gone
}

func (s *sweeping) cgroupWanted(pid int) bool {
	if s.keys == nil {
		return s.wanted(markOf(pid))
	}
	return slices.ContainsFunc(s.denied, func(m Marked) bool { return m.PID == pid })
}

// FindMarked lists the living processes that have the mark of an attempt.
func FindMarked() []Marked {
	return findMarked(Mark.valid)
}

func findMarked(wanted func(Mark) bool) (found []Marked) {
	for _, pid := range processes() {
		if m := markOf(pid); wanted(m) {
			if p, ok := describe(pid, m); ok {
				found = append(found, p)
			}
		}
	}
	return found
}
