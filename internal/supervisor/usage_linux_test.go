package supervisor

import (
	"testing"
	"time"
)

// TestUsageCountsAllProcessesOfAttempt runs a command whose background process
// leaves the session and uses CPU time and memory. The usage of the command
// must include this process. The usage of the next command must be smaller.
func TestUsageCountsAllProcessesOfAttempt(t *testing.T) {
	g, _ := startGuardian(t)
	// The input of tail has no newline, so tail keeps all of it in memory. The
	// last line writes a file of 3 MB.
	const script = `mkfifo end
setsid -f sh -c 'head -c 60000000 /dev/zero | tail -n 1 >/dev/null; echo done >end'
head -c 3000000 /dev/zero >big; cat end`
	c := shell(script)
	c.Dir = t.TempDir()
	child, _, out := startCommand(t, g, c, time.Hour)
	if line, err := out.ReadString('\n'); line != "done\n" {
		t.Fatalf("got output %q (%v), want done", line, err)
	}
	exit, err := waitChild(t, child)
	used := exit.Usage
	if err != nil || used.MaxRSS < 60_000_000 || used.User+used.System < time.Millisecond || used.Read < 0 ||
		used.Written != 0 && used.Written < 3_000_000 { // the command writes 0 bytes to a disk if its directory is in memory (tmpfs)
		t.Errorf("got %+v (%v); want 60 MB or more of memory, 1 ms or more of CPU time, and 0 or at least 3 MB written", used, err)
	}
	next, _, _ := startScript(t, g, "exit 0", time.Hour)
	if exit, err := waitChild(t, next); err != nil || exit.Usage.MaxRSS >= 60_000_000 || exit.Usage.Written >= 3_000_000 {
		t.Errorf("the next attempt: got %+v (%v), want less than the attempt before", exit.Usage, err)
	} else {
		t.Logf("true: %+v; before %+v", exit.Usage, used)
	}
}
