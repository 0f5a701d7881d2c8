package supervisor

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/runner/test/testkit"
)

func TestGuardianReportsErrorsOfStart(t *testing.T) {
	g, _ := startGuardian(t)
	start := func(c Command, deadline time.Duration) error {
		_, err := startAndWait(t, g, c, deadline)
		return err
	}
	if err := start(Command{Path: "/missing", Argv: []string{"x"}}, time.Hour); !errors.Is(err, unix.ENOENT) {
		t.Errorf("missing program: got error %v, want %v", err, unix.ENOENT)
	}
	if err := start(Command{Path: "/bin/sh", Argv: []string{"x"}, Dir: "/missing"}, time.Hour); !errors.Is(err, unix.ENOENT) {
		t.Errorf("missing directory: got error %v, want %v", err, unix.ENOENT)
	}
	if err := start(shell("exit"), -time.Second); !errors.Is(err, ErrRefused) {
		t.Errorf("deadline in the past: got error %v, want %v", err, ErrRefused)
	}
	if err := start(Command{Path: "/bin/sh"}, time.Hour); !errors.Is(err, unix.EINVAL) {
		t.Errorf("empty argv: got error %v, want %v", err, unix.EINVAL)
	}
}

func TestArgumentsArriveByteForByteThroughGuardian(t *testing.T) {
	g, _ := startGuardian(t)
	dir := t.TempDir()
	r, w, _ := os.Pipe()
	defer r.Close()
	script := `pwd -P; printf '%s|' "$@" "$A"; ls /proc/$$/fd | tr '\n' ' '; grep -c . /proc/$PPID/environ`
	c := Command{Path: "/bin/sh", Argv: []string{"sh", "-c", script, "x", "\xff\xfe", "", " a\nb "},
		Env: []string{"A=\xfe", "PATH=/usr/bin:/bin"}, Dir: dir, Stdout: w, Stderr: w}
	child, err := g.start(c, Key{1, 1}, time.Now().Add(time.Hour))
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	text := make([]byte, 4096)
	n := 0
	for {
		k, err := r.Read(text[n:])
		if n += k; err != nil {
			break
		}
	}
	waitChild(t, child)
	if want := dir + "\n\xff\xfe|| a\nb |\xfe|0 1 2 "; !strings.HasPrefix(string(text[:n]), want) {
		t.Errorf("got %q, want the prefix %q", text[:n], want)
	}
}

func TestDeadlineKillsUnlessItIsRenewed(t *testing.T) {
	g, lock := startGuardian(t)
	other := startGuardianInSlot(t, lock, 1)
	for deadline := 300 * time.Millisecond; ; deadline *= 4 {
		began := time.Now()
		a, _, ra := startScript(t, g, "setsid -f sh -c 'echo $$; exec sleep 600'; exec sleep 600", deadline)
		b, key, _ := startScript(t, other, "exec sleep 600", deadline)
		other.renew([]Key{key}, time.Now().Add(time.Hour))
		inTime := time.Since(began) < deadline/2
		text, _ := ra.ReadString('\n') // if the command is killed before it prints the pid, the text is empty
		child, _ := strconv.Atoi(strings.TrimSpace(text))
		if exit, err := waitChild(t, a); !errors.Is(err, ErrDeadline) || exit.Signal != 9 || child != 0 && running(child) {
			t.Errorf("got %+v, error %v; want signal 9, %v and no process left", exit, err, ErrDeadline)
		}
		alive := len(childrenOfProcess(other.process.Pid)) > 0
		b.Kill()
		waitChild(t, b)
		if inTime && child != 0 {
			if !alive {
				t.Error("the command with a renewed deadline is dead; want it alive")
			}
			return
		}
		t.Logf("a deadline of %v is too short for this machine now", deadline)
	}
}

func TestTerminateIsFollowedByKill(t *testing.T) {
	g, _ := startGuardian(t)
	c, _, r := startScript(t, g, "trap '' TERM; echo 1; while :; do sleep 0.1; done", time.Hour)
	line(t, r)
	c.Terminate()
	c.Kill()
	if exit, err := waitChild(t, c); err != nil || exit.Signal != 9 || exit.LeftOver != 0 {
		t.Errorf("got %+v, error %v; want signal 9 and none left over", exit, err)
	}
}

func TestCommandsDieWithTheirGuardian(t *testing.T) {
	for name, script := range leftOverScripts {
		g, lock := startGuardian(t)
		child, _, r := startScript(t, g, script+"\nexec sleep 600", time.Hour)
		pid := line(t, r)
		if name == "no environ" && !hasCgroup(lock) {
			killLater(t, pid) // nobody finds it
			continue
		}
		first := leader(t, child)
		unix.Kill(g.process.Pid, unix.SIGKILL)
		if _, err := waitChild(t, child); !errors.Is(err, ErrLost) {
			t.Errorf("%s: got error %v, want %v", name, err, ErrLost)
		}
		if running(pid) || running(first) {
			t.Errorf("%s: a process of the command is alive; want all dead", name)
		}
		<-g.done
		if !lock.Clean() {
			t.Errorf("%s: got records %+v, want none", name, recordsOf(lock.Path()))
		}
		if _, err := TakeLock(lock.Path()); !errors.Is(err, ErrHeld) {
			t.Errorf("%s: lock of a living worker: got error %v, want %v", name, err, ErrHeld)
		}
		if _, err := g.start(shell("exit"), Key{1, 1}, time.Now().Add(time.Hour)); !errors.Is(err, errGone) {
			t.Errorf("%s: start by a dead guardian: got error %v, want %v", name, err, errGone)
		}
	}
}

func TestGuardianThatHangsIsKilled(t *testing.T) {
	g, _ := startGuardian(t)
	child, _, _ := startScript(t, g, "exec sleep 600", time.Hour)
	pid := leader(t, child)
	unix.Kill(g.process.Pid, unix.SIGSTOP)
	testkit.Eventually(t, "the end of the command", func() bool {
		g.renew(nil, time.Time{})
		select {
		case <-child.Ended():
			return true
		default:
			return false
		}
	})
	if _, err := waitChild(t, child); !errors.Is(err, ErrLost) || running(pid) {
		t.Errorf("got error %v, command alive %v; want %v, false", err, running(pid), ErrLost)
	}
}

func TestManyStartsThroughGuardian(t *testing.T) {
	lock := newTestLock(t)
	var wg sync.WaitGroup
	for i := range 8 {
		g := startGuardianInSlot(t, lock, i)
		wg.Go(func() {
			for j := range 25 {
				code := (8*j + i) % 200
				child, err := g.start(shell(fmt.Sprintf("exit %d", code)), Key{1, generation.Add(1)},
					time.Now().Add(time.Hour))
				if err != nil {
					t.Errorf("start: got error %v, want none", err)
					return
				}
				if exit, err := child.Wait(); err != nil || exit.Code != code || exit.LeftOver != 0 {
					t.Errorf("got %+v, error %v; want exit status %d and none left over", exit, err, code)
				}
			}
		})
	}
	wg.Wait()
	if len(recordsOf(lock.Path())) != 0 {
		t.Errorf("got records %+v, want none", recordsOf(lock.Path()))
	}
}

func TestGuardReturnsFalseWithoutSocket(t *testing.T) {
	args := os.Args
	defer func() { os.Args = args }()
	os.Args = []string{"x", guardianArg, "w", "0"} // these are the arguments of a guardian, but descriptor 3 of a test is no socket
	if Guard("test") {
		t.Error("Guard: got true, want false")
	}
}

// TestCommandIsStoppedDuringItsStart sends a signal before the command runs.
func TestCommandIsStoppedDuringItsStart(t *testing.T) {
	g, _ := startGuardian(t)
	for i := range 20 {
		child, err := g.start(shell("exec sleep 600"), Key{1, generation.Add(1)}, time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		stop, signal := child.Terminate, 15
		if i%2 == 0 {
			stop, signal = child.Kill, 9
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if exit, err := waitChild(t, child); !errors.Is(err, ErrRefused) && (err != nil || exit.Signal != signal) {
			t.Errorf("got %+v, error %v; want signal %d or %v", exit, err, signal, ErrRefused)
		}
		if exit, err := startAndWait(t, g, shell("exit 3"), time.Hour); exit.Code != 3 || err != nil { // the guardian still works
			t.Fatalf("the next command: got %+v, error %v; want exit status 3", exit, err)
		}
	}
}

// TestDeadlinesAreEnforcedWhileWorkerReadsNothing uses a worker that reads
// nothing, like a stopped worker, so the replies of the guardian fill the
// socket. The guardian must still kill the command at its deadline.
func TestDeadlinesAreEnforcedWhileWorkerReadsNothing(t *testing.T) {
	// This client reads no replies, because receive is not called.
	g := &Guardian{pool: testGuardians(worker, newTestLock(t))}
	if err := errors.Join(g.launch(), g.hello()); err != nil {
		t.Fatal(err)
	}
	defer func() {
		g.socket.Close()
		if t.Failed() {
			g.process.Kill()
		}
		g.process.Wait()
		ownChildren.Delete(g.process.Pid)
	}()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	out := int(w.Fd())
	err = g.send(request{Op: opStart, Key: Key{7, 1}, Words: []byte("/bin/sh\x00/\x00sh\x00-c\x00echo $$; exec sleep 600"), Args: 3,
		Deadline: clockAt(time.Now().Add(time.Hour))}, unix.UnixRights(out, out, out))
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	command := line(t, bufio.NewReader(r))
	renewal := request{Op: opRenew, Key: Key{7, 1}, Deadline: clockAt(time.Now().Add(time.Second))}
	if err := g.send(renewal, nil); err != nil {
		t.Fatal(err)
	}
	ping, err := json.Marshal(&request{Op: opRenew, N: 1 << 60})
	if err != nil {
		t.Fatal(err)
	}
	for range 20_000 { // the guardian answers each ping
		if err := g.socket.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		// The write fails when the guardian reads no more requests. The
		// guardian stops reading until it can send its replies.
		if _, err := g.socket.Write(ping); err != nil {
			break
		}
	}
	testkit.Eventually(t, "the end of the command", func() bool { return !running(command) })
}

// TestKillAfterDeadlineCountsAsDeadline kills a command before its guardian
// notices that the deadline has passed. This happens when the guardian is
// stopped and another worker calls Sweep.
func TestKillAfterDeadlineCountsAsDeadline(t *testing.T) {
	for _, test := range []struct {
		left time.Duration
		late bool
	}{{-time.Millisecond, true}, {time.Hour, false}} {
		a := &attempt{request: request{Deadline: monotonic() + int64(test.left)}}
		if a.end(unix.WaitStatus(unix.SIGKILL)); a.exit.Signal != 9 || a.late != test.late {
			t.Errorf("got %+v, late %v; want signal 9, late %v", a.exit, a.late, test.late)
		}
	}
}
