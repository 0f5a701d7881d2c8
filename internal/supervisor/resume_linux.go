package supervisor

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ResumeGuardians sends CONT to the stopped guardians of a worker, if the process of the worker is gone. The guardians
// notice that the worker is gone, kill their commands and exit, which frees the worker's lock. ResumeGuardians reports
// whether it found a guardian.
func ResumeGuardians(worker string, pid int) (found bool) {
	if running(pid) {
		return false
	}
	for _, pid := range processes() {
		if stopped(pid) && isGuardianOf(pid, worker) {
			found = true
			_ = unix.Kill(pid, unix.SIGCONT) // fails for a guardian of another user
		}
	}
	return found
}

func stopped(pid int) bool {
	field := statFields(pid)
	return len(field) > 0 && string(field[0]) == "T"
}

// isGuardianOf reports whether a process is a guardian of the worker.
func isGuardianOf(pid int, worker string) bool {
	line, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/cmdline")
	words := bytes.Split(line, []byte{0})
	return len(words) > 2 && string(words[1]) == guardianArg && string(words[2]) == worker
}
