package supervisor

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ResumeGuardians continues the stopped guardians of a worker whose process, pid, is gone. They notice that, kill their commands and end,
// which frees the worker's lock. It returns whether it found any.
func ResumeGuardians(worker string, pid int) (found bool) {
	if running(pid) {
		return false
	}
	for _, pid := range processes() {
		if stopped(pid) && isGuardianOf(pid, worker) {
			found = true
			_ = unix.Kill(pid, unix.SIGCONT) // it may be another user's
		}
	}
	return found
}

func stopped(pid int) bool {
	field := statFields(pid)
	return len(field) > 0 && string(field[0]) == "T"
}

// isGuardianOf says whether a process is a guardian of the worker.
func isGuardianOf(pid int, worker string) bool {
	line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	words := bytes.Split(line, []byte{0})
	return len(words) > 2 && string(words[1]) == guardianArg && string(words[2]) == worker
}
