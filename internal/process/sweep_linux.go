package process

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Sweep kills what is left of the commands of a worker whose guardian is dead or hangs: of all of them, or of those named by
// keys. It finds a process by the variables that every command is given, and by its session, if that is the session of a
// command that the worker's lock file has a record of. It returns true when two looks in a row, 10 ms apart, have found nothing
// alive, and false when that has not come about in a second and in twenty looks: beside much other load a look takes a tenth of a second,
// and so does dying.
//
// It sees this user's processes in this pid namespace. A process that left its session and cleared its environment is not found.
func Sweep(worker string, keys []Key, records []Record) bool {
	s := sweeping{worker: worker, keys: keys, opaque: map[int]bool{}}
	for _, r := range records {
		if s.wanted(r.Key) {
			s.records = append(s.records, r)
		}
	}
	clean, looks := 0, 0
	for end := time.Now().Add(patience); clean < 2; time.Sleep(10 * time.Millisecond) {
		if looks++; looks > 20 && time.Now().After(end) {
			return false
		}
		if clean++; s.pass() {
			clean = 0
		}
	}
	return true
}

type sweeping struct {
	worker  string
	keys    []Key // nil: all
	records []Record
	opaque  map[int]bool // had no environment the last time: between fork and exec, in exec, or for good
}

func (s *sweeping) wanted(k Key) bool { return s.keys == nil || slices.Contains(s.keys, k) }

// pass looks at each process once, and returns whether another pass is needed to be sure.
func (s *sweeping) pass() (again bool) {
	self, uid := os.Getpid(), os.Getuid()
	opaque := map[int]bool{}
	for _, pid := range processes() {
		if pid == self || owner(pid) != uid {
			continue
		}
		hit, empty := s.evidence(pid)
		if empty {
			opaque[pid] = true
			again = again || !s.opaque[pid]
		}
		if hit {
			again = true
			s.kill(pid)
		}
	}
	s.opaque = opaque
	return again
}

// kill kills pid if the evidence still holds once a handle is open: then the number cannot have changed hands.
func (s *sweeping) kill(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return // gone; or no pidfd on this kernel, and then nothing is killed on a guess
	}
	defer unix.Close(fd)
	if hit, _ := s.evidence(pid); hit {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0) // a process that stays is seen by the next pass
	}
}

// evidence says whether pid is alive and belongs to what is swept, and whether it showed no environment.
func (s *sweeping) evidence(pid int) (hit, empty bool) {
	if session, err := unix.Getsid(pid); err == nil {
		for _, r := range s.records {
			if session == r.PID && running(pid) {
				if at := started(r.PID); at == 0 || at == r.Started { // else the number is a later process's
					return true, false
				}
			}
		}
	}
	environ := environOf(pid)
	if len(environ) == 0 {
		return false, running(pid)
	}
	worker, key := tags(environ)
	return worker == s.worker && s.wanted(key), false
}

// The variables that name a command's worker and attempt. Every command is given them.
const (
	workerTag     = "RUNNER_WORKER_ID="
	idTag         = "RUNNER_TASK_ID="
	generationTag = "RUNNER_TASK_GENERATION="
)

// tags reads them from an environment as /proc shows it.
func tags(environ []byte) (worker string, key Key) {
	for variable := range bytes.SplitSeq(environ, []byte{0}) {
		if value, ok := bytes.CutPrefix(variable, []byte(workerTag)); ok {
			worker = string(value)
		} else if value, ok := bytes.CutPrefix(variable, []byte(idTag)); ok {
			key.ID, _ = strconv.ParseInt(string(value), 10, 64)
		} else if value, ok := bytes.CutPrefix(variable, []byte(generationTag)); ok {
			key.Generation, _ = strconv.ParseInt(string(value), 10, 64)
		}
	}
	return worker, key
}

// FindTagged lists the living processes of this user that were given the variables of a command.
func FindTagged() []Tagged {
	var found []Tagged
	uid := os.Getuid()
	for _, pid := range processes() {
		if owner(pid) != uid {
			continue
		}
		worker, key := tags(environOf(pid))
		field := statOf(pid)
		if worker == "" || len(field) == 0 || !running(pid) {
			continue
		}
		name, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm")
		found = append(found, Tagged{PID: pid, Name: strings.TrimSpace(string(name)), State: string(field[0]), Worker: worker, Key: key})
	}
	return found
}

// processes lists all processes of this pid namespace; none if /proc cannot be read.
func processes() []int {
	proc, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer proc.Close()
	names, _ := proc.Readdirnames(-1)
	pids := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// owner returns the user of a process; -1 if it is gone. Of a process that may not be looked into it is root.
func owner(pid int) int {
	var stat unix.Stat_t
	if unix.Stat("/proc/"+strconv.Itoa(pid), &stat) != nil {
		return -1
	}
	return int(stat.Uid)
}

func environOf(pid int) []byte {
	environ, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	return environ
}

// started returns when a process started, in clock ticks since the boot; 0 if it is gone.
func started(pid int) uint64 {
	field := statOf(pid)
	if len(field) < 20 {
		return 0
	}
	at, _ := strconv.ParseUint(string(field[19]), 10, 64)
	return at
}
