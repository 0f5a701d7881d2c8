package supervisor

import (
	"bufio"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"example.com/runner/test/testkit"
)

// newTestLock creates a lock file with a unique name.
func newTestLock(t testing.TB) *Lock {
	t.Helper()
	lock, err := NewLock(filepath.Join(t.TempDir(), fmt.Sprintf("%s-%d.lock", worker, generation.Add(1))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(lock.Remove(), lock.Close()) })
	return lock
}

func testGuardians(worker string, lock *Lock) *Guardians {
	log := slog.New(slog.DiscardHandler)
	return NewGuardians(GuardiansOptions{Version: "test", Worker: worker, Lock: lock, Log: log, Fail: func(error) {}})
}

// isIdle reports whether a guardian can start a command.
func isIdle(g *Guardian) bool {
	g.pool.mu.Lock()
	defer g.pool.mu.Unlock()
	return !g.gone && g.child == nil
}

// startGuardian starts a guardian with a lock of its own.
func startGuardian(t testing.TB) (*Guardian, *Lock) {
	t.Helper()
	lock := newTestLock(t)
	return startGuardianInSlot(t, lock, 0), lock
}

// startGuardianInSlot starts a guardian that writes its record at the position
// "slot" of an existing lock file.
func startGuardianInSlot(t testing.TB, lock *Lock, slot int) *Guardian {
	t.Helper()
	g, err := testGuardians(worker, lock).startGuardian(slot)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.close() })
	return g
}

// worker is the id of the worker of all commands in these tests. The id is
// unique on this machine, because the same tests may run in several processes
// at the same time.
var worker = fmt.Sprint("test-", os.Getpid())

var generation atomic.Int64

// startScript starts a shell script with its output in a pipe.
func startScript(t testing.TB, g *Guardian, script string, deadline time.Duration) (*Child, Key, *bufio.Reader) {
	t.Helper()
	return startCommand(t, g, shell(script), deadline)
}

// startCommand starts a command with its output in a pipe.
func startCommand(t testing.TB, g *Guardian, c Command, deadline time.Duration) (*Child, Key, *bufio.Reader) {
	t.Helper()
	key := Key{7, generation.Add(1)}
	c.Env = append(c.Env, Mark{worker, key}.Environ()...)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	c.Stdout = w
	child, err := g.start(c, key, time.Now().Add(deadline))
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return child, key, bufio.NewReader(r)
}

// startAndWait runs a command. The error may be one of its start.
func startAndWait(t testing.TB, g *Guardian, c Command, deadline time.Duration) (Exit, error) {
	t.Helper()
	child, err := g.start(c, Key{7, generation.Add(1)}, time.Now().Add(deadline))
	if err != nil {
		return Exit{}, err
	}
	return waitChild(t, child)
}

// leader waits until a command that goes on running is executed, and returns
// the pid of its leader: the oldest child of its guardian. Before its exec, the
// child is still the program of the guardian, and the guardian can't be
// stopped.
func leader(t testing.TB, c *Child) (pid int) {
	t.Helper()
	guardianPID := c.g.process.Pid
	testkit.Eventually(t, "the start of the command", func() bool {
		// The kernel lists children in the order in which it got them, and the
		// leader is the first. A pid or the time of a start tells less: pids
		// start again at 1, and that time is in hundredths of a second.
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", guardianPID))
		list := numbersIn(text)
		if len(list) == 0 {
			list = childrenOfProcess(guardianPID) // some kernels do not list the children of a thread
		}
		if len(list) > 0 {
			pid = list[0]
		}
		program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		guardian, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", guardianPID))
		return len(list) > 0 && err == nil && program != guardian
	})
	return pid
}

// hasCgroup reports whether the first guardian of a lock has a cgroup.
func hasCgroup(lock *Lock) bool {
	return len(membersOf(lock.cgroupDir(0))) > 0
}

func waitChild(t testing.TB, c *Child) (Exit, error) {
	t.Helper()
	select {
	case <-c.ended:
	case <-time.After(limit):
		t.Fatalf("got a command that still runs after %v, want it ended", limit)
	}
	return c.Wait()
}

// line reads a line and returns the number in it.
func line(t testing.TB, r *bufio.Reader) int {
	t.Helper()
	text, err := r.ReadString('\n')
	n, bad := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || bad != nil {
		t.Fatalf("got the line %q, error %v; want a number", text, err)
	}
	return n
}

// newRelease returns a line for a script. At that line the script waits until
// the test calls release. Without this wait, the guardian could kill the
// processes of the script before the script has printed their pids.
func newRelease(t testing.TB) (line string, release func()) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "release")
	return fmt.Sprintf("until test -e '%s'; do sleep 0.02; done\n", file), func() {
		t.Helper()
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
