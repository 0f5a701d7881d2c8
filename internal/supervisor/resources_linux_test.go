package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestPrioritiesBelongToOneCommand runs a command with a niceness and a disk
// priority. The next command of the same guardian must have neither, but the
// niceness of the test.
func TestPrioritiesBelongToOneCommand(t *testing.T) {
	g, _ := startGuardian(t)
	const best6 = 2<<13 | 6
	raw, err := unix.Getpriority(unix.PRIO_PROCESS, 0) // Linux returns 20 minus the niceness
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"7 7", fmt.Sprintf("%d %[1]d", 20-raw)} {
		c := shell(`(cut -d' ' -f19 /proc/self/stat | tr '\n' ' '); cut -d' ' -f19 /proc/self/stat`)
		if want == "7 7" {
			c.Resources = Resources{Nice: 7, IOPriority: best6}
		}
		child, _, out := startCommand(t, g, c, time.Hour)
		got, err := out.ReadString('\n')
		if exit, failed := waitChild(t, child); strings.TrimSpace(got) != want || err != nil || failed != nil || exit.Code != 0 {
			t.Errorf("niceness: got %q (%v), %+v (%v); want %q", got, err, exit, failed, want)
		}
	}
	c := shell("exec sleep 300")
	c.Resources = Resources{IOPriority: best6}
	child, _, _ := startCommand(t, g, c, time.Hour)
	priority, _, errno := unix.Syscall(unix.SYS_IOPRIO_GET, 1, uintptr(leader(t, child)), 0)
	if priority != best6 || errno != 0 {
		t.Errorf("disk priority: got %#x (%v), want %#x", priority, errno, best6)
	}
	child.Kill()
	waitChild(t, child)
}

// TestCommandWithPrioritiesDiesWithItsGuardian kills a guardian whose command
// has a niceness. A separate thread of the guardian has forked this command,
// but the command must die with the guardian.
func TestCommandWithPrioritiesDiesWithItsGuardian(t *testing.T) {
	g, _ := startGuardian(t)
	c := shell("exec sleep 300")
	c.Resources.Nice = 7
	child, _, _ := startCommand(t, g, c, time.Hour)
	pid := leader(t, child)
	if err := unix.Kill(g.process.Pid, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if _, err := waitChild(t, child); !errors.Is(err, ErrLost) || running(pid) {
		t.Errorf("got error %v, alive %v; want ErrLost, false", err, running(pid))
	}
}

// TestCommandOfAnotherUser starts a command with another user and other groups.
// Only root can do so.
func TestCommandOfAnotherUser(t *testing.T) {
	g, _ := startGuardian(t)
	c := shell(`echo $(id -u) $(id -g) $(id -G)`)
	c.Resources.User = &User{UID: 65534, GID: 65533, Groups: []int{12345, 12346}}
	if os.Geteuid() != 0 {
		if _, err := startAndWait(t, g, c, time.Hour); !errors.Is(err, unix.EPERM) {
			t.Errorf("got error %v, want EPERM", err)
		}
		return
	}
	child, _, out := startCommand(t, g, c, time.Hour)
	got, err := out.ReadString('\n')
	if got != "65534 65533 65533 12345 12346\n" || err != nil {
		t.Errorf("got %q (%v), want 65534 65533 65533 12345 12346", got, err)
	}
	waitChild(t, child)
}

// TestCommandWithLimitThatCannotBeAppliedDoesNotRun uses a worker that shares
// its cgroup with other processes, so its limits cannot be applied.
// scripts/limits tests limits that can be applied.
func TestCommandWithLimitThatCannotBeAppliedDoesNotRun(t *testing.T) {
	g, _ := startGuardian(t)
	for name, limit := range map[string]Resources{"memory": {Memory: 1 << 30}, "cpu": {CPU: 50}} {
		c := shell("echo ran >&2")
		c.Resources = limit
		_, err := g.start(c, Key{7, generation.Add(1)}, time.Now().Add(time.Hour))
		if failed, ok := errors.AsType[*ResourceError](err); !ok || failed.Resource != name {
			t.Errorf("%s: got error %v, want a ResourceError of %s", name, err, name)
		}
	}
	if child, _, _ := startScript(t, g, "exit 3", time.Hour); child != nil {
		if exit, err := waitChild(t, child); exit.Code != 3 || err != nil {
			t.Errorf("a command without limits: got %+v (%v), want exit status 3", exit, err)
		}
	}
}

// TestLeaveCgroup moves a child of this process from one cgroup to another. It
// also checks that leaveCgroup refuses to move a process that this process did
// not start.
func TestLeaveCgroup(t *testing.T) {
	dir := filepath.Join(ownCgroup(), "runner-test-"+strconv.Itoa(os.Getpid()))
	if err := os.Mkdir(dir, 0o755); ownCgroup() == "" || err != nil {
		t.Skip("this user cannot create a cgroup:", err)
	}
	t.Cleanup(func() { removeCgroup(dir) })
	leaf := filepath.Join(dir, "leaf")
	if left, err := leaveCgroup(dir, leaf); left || err != nil {
		t.Errorf("an empty cgroup: got %v, %v; want false and no error", left, err)
	}
	child, err := Start(shell("exec sleep 300"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		child.Kill()
		wait(t, child)
	}()
	if err := writeCgroup(dir, "cgroup.procs", strconv.Itoa(child.Pid())); err != nil {
		t.Fatal(err)
	}
	left, err := leaveCgroup(dir, leaf)
	text, _ := os.ReadFile(filepath.Join(leaf, "cgroup.procs"))
	if !left || err != nil || strings.TrimSpace(string(text)) != strconv.Itoa(child.Pid()) {
		t.Errorf("got %v, %v, processes %q in the leaf; want true, no error and process %d", left, err, text, child.Pid())
	}
	if left, err := leaveCgroup(filepath.Dir(dir), leaf); err == nil && left {
		t.Errorf("a cgroup with processes of others: got %v, %v; want an error, or false for the root", left, err)
	}
}
