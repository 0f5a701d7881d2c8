package supervisor

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/runner/internal/testkit"
)

// locked makes a lock whose name is nobody else's.
func newTestLock(t testing.TB) *Lock {
	t.Helper()
	lock, err := NewLock(filepath.Join(t.TempDir(), fmt.Sprintf("%s-%d.lock", worker, generation.Add(1))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(lock.Remove(), lock.Close()) })
	return lock
}

// guarded starts a guardian, with a lock of its own.
func startGuardian(t testing.TB) (*Guardian, *Lock) {
	t.Helper()
	lock := newTestLock(t)
	return startGuardianInSlot(t, lock, 0), lock
}

// guardianOf starts the guardian of a slot.
func startGuardianInSlot(t testing.TB, lock *Lock, slot int) *Guardian {
	t.Helper()
	g, err := StartGuardian(GuardianOptions{Version: "test", Worker: worker, Lock: lock, Slot: slot})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = g.Close() })
	return g
}

// worker is whose the commands are: nobody else's on this machine, where the same tests may run at the same time.
var worker = fmt.Sprint("test-", os.Getpid())

var generation atomic.Int64

// startScript starts a script with its output in a pipe.
func startScript(t testing.TB, g *Guardian, script string, deadline time.Duration) (*Child, Key, *bufio.Reader) {
	t.Helper()
	key := Key{7, generation.Add(1)}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	c := shell(script)
	c.Stdout = w
	child, err := g.Start(t.Context(), c, key, time.Now().Add(deadline))
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return child, key, bufio.NewReader(r)
}

func waitChild(t testing.TB, c *Child) (Exit, error) {
	t.Helper()
	select {
	case <-c.ended:
	case <-time.After(limit):
		t.Fatal("the command does not end")
	}
	return c.Wait()
}

// line reads a number from a line.
func line(t testing.TB, r *bufio.Reader) int {
	t.Helper()
	text, err := r.ReadString('\n')
	n, bad := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || bad != nil {
		t.Fatalf("%q, %v", text, err)
	}
	return n
}

// gate is a line of a script that waits, and what lets it go on: a script that ended by itself might be swept before it has said
// whom it leaves behind.
func newGate(t testing.TB) (line string, open func()) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "open")
	return fmt.Sprintf("until test -e '%s'; do sleep 0.02; done\n", file), func() {
		t.Helper()
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// leftOverScripts are the ways in which a command leaves its group; each prints a pid.
var leftOverScripts = map[string]string{
	"plain":         `echo $$; exec sleep 60`,
	"background":    `sleep 60 & echo $!`,
	"nohup":         `nohup sleep 60 >/dev/null 2>&1 & echo $!`,
	"setsid":        `setsid sleep 60 & echo $!`,
	"setsid -f":     `setsid -f sh -c 'echo $$; exec sleep 60'`,
	"double fork":   `(setsid sh -c "sh -c 'echo \$\$; exec sleep 60' &" &)`,
	"no environ":    `env -i setsid -f sh -c 'echo $$; exec sleep 60'`,
	"stopped":       `setsid sh -c 'echo $$; kill -STOP $$; sleep 60' &`,
	"ignores signs": `trap '' TERM INT HUP; setsid -f sh -c 'echo $$; exec sleep 60'; sleep 60`,
}

func TestLeftOversOfEveryShapeAreKilledWithTheirAttempt(t *testing.T) {
	for name, script := range leftOverScripts {
		g, lock := startGuardian(t)
		seen, end := newGate(t)
		child, _, r := startScript(t, g, script+"\n"+seen+"exit 3", time.Minute)
		pid := line(t, r)
		end()
		if name == "plain" || name == "ignores signs" {
			child.Kill()
		}
		exit, err := waitChild(t, child)
		if err != nil {
			t.Error(name, err)
		}
		if running(pid) {
			t.Errorf("%s: left over, %+v", name, exit)
		}
		if !lock.Clean() {
			t.Errorf("%s: got records %+v, want none", name, lock.Records())
		}
		if err := g.Close(); err != nil {
			t.Error(name, err)
		}
	}
}

func TestOnlyTheAttemptThatEndedIsSwept(t *testing.T) {
	g, lock := startGuardian(t)
	seen, end := newGate(t)
	a, _, ra := startScript(t, g, "setsid -f sh -c 'echo $$; exec sleep 60'; "+seen+"exit 4", time.Minute)
	b, key, rb := startScript(t, startGuardianInSlot(t, lock, 1), "setsid -f sh -c 'echo $$; exec sleep 60'; exec sleep 60", time.Minute)
	mine, other := line(t, ra), line(t, rb)
	end()
	exit, err := waitChild(t, a)
	if err != nil || exit.Code != 4 || exit.LeftOver != 1 || running(mine) {
		t.Errorf("%+v, %v", exit, err)
	}
	if !running(other) {
		t.Error("a bystander was killed")
	}
	if records := lock.Records(); len(records) != 1 || records[0].Key != key {
		t.Errorf("%+v", records)
	}
	b.Terminate(0)
	if exit, err := waitChild(t, b); exit.Signal != 15 || err != nil || running(other) {
		t.Errorf("%+v, %v", exit, err)
	}
}

func TestGuardianAnswersErrorsOfStart(t *testing.T) {
	g, _ := startGuardian(t)
	start := func(c Command, deadline time.Duration) error {
		_, err := g.Start(t.Context(), c, Key{1, generation.Add(1)}, time.Now().Add(deadline))
		return err
	}
	var wrong *DirError
	if err := start(Command{Path: "/missing", Argv: []string{"x"}}, time.Minute); !errors.Is(err, unix.ENOENT) || errors.As(err, &wrong) {
		t.Error(err)
	}
	if err := start(Command{Path: "/bin/sh", Argv: []string{"x"}, Dir: "/missing"}, time.Minute); !errors.As(err, &wrong) {
		t.Error(err)
	}
	if err := start(shell("exit"), -time.Second); !errors.Is(err, ErrRefused) {
		t.Error("late:", err)
	}
	if err := start(Command{Path: "/bin/sh"}, time.Minute); !errors.Is(err, unix.EINVAL) {
		t.Error(err)
	}
}

func TestWordsArriveByteForByteThroughTheGuardian(t *testing.T) {
	g, _ := startGuardian(t)
	dir := t.TempDir()
	r, w, _ := os.Pipe()
	defer r.Close()
	c := Command{Path: "/bin/sh", Argv: []string{"sh", "-c", `pwd -P; printf '%s|' "$@" "$A"; ls /proc/$$/fd | tr '\n' ' '; grep -c . /proc/$PPID/environ`, "x", "\xff\xfe", "", " a\nb "},
		Env: []string{"A=\xfe", "PATH=/usr/bin:/bin"}, Dir: dir, Stdout: w, Stderr: w}
	child, err := g.Start(t.Context(), c, Key{1, 1}, time.Now().Add(time.Minute))
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
		t.Errorf("%q, want %q", text[:n], want)
	}
}

func TestDeadlineKillsAndRenewalSaves(t *testing.T) {
	g, lock := startGuardian(t)
	other := startGuardianInSlot(t, lock, 1)
	for deadline := 300 * time.Millisecond; ; deadline *= 4 {
		began := time.Now()
		a, _, ra := startScript(t, g, "setsid -f sh -c 'echo $$; exec sleep 60'; exec sleep 60", deadline)
		b, key, _ := startScript(t, other, "exec sleep 60", deadline)
		other.Renew([]Key{key}, time.Now().Add(time.Minute))
		inTime := time.Since(began) < deadline/2
		text, _ := ra.ReadString('\n') // empty if it was killed before it came so far
		child, _ := strconv.Atoi(strings.TrimSpace(text))
		if exit, err := waitChild(t, a); !errors.Is(err, ErrDeadline) || exit.Signal != 9 || child != 0 && running(child) {
			t.Errorf("%+v, %v", exit, err)
		}
		alive := running(b.Pid())
		b.Kill()
		waitChild(t, b)
		if inTime && child != 0 {
			if !alive {
				t.Error("a renewed one was killed")
			}
			return
		}
		t.Logf("a deadline of %v is too short for this machine now", deadline)
	}
}

func TestTerminateIsFollowedByKill(t *testing.T) {
	g, _ := startGuardian(t)
	c, _, r := startScript(t, g, "trap '' TERM; echo 1; while :; do sleep 0.1; done", time.Minute)
	line(t, r)
	c.Terminate(50 * time.Millisecond)
	if exit, err := waitChild(t, c); err != nil || exit.Signal != 9 || exit.LeftOver != 0 {
		t.Errorf("%+v, %v", exit, err)
	}
}

func TestCommandsDieWithTheirGuardian(t *testing.T) {
	for name, script := range leftOverScripts {
		g, lock := startGuardian(t)
		child, _, r := startScript(t, g, script+"\nexec sleep 60", time.Minute)
		pid := line(t, r)
		unix.Kill(g.Pid(), unix.SIGKILL)
		if _, err := waitChild(t, child); !errors.Is(err, ErrLost) {
			t.Error(name, err)
		}
		if running(pid) || running(child.Pid()) {
			t.Error(name, "lives")
		}
		<-g.Done()
		if !lock.Clean() {
			t.Errorf("%s: got records %+v, want none", name, lock.Records())
		}
		if _, err := TakeLock(lock.Path()); !errors.Is(err, ErrHeld) {
			t.Error(name, "the worker lives, and its lock is free:", err)
		}
		if _, err := g.Start(t.Context(), shell("exit"), Key{1, 1}, time.Now().Add(time.Minute)); !errors.Is(err, ErrGone) {
			t.Error(name, err)
		}
	}
}

func TestAGuardianThatHangsIsKilled(t *testing.T) {
	g, _ := startGuardian(t)
	child, _, _ := startScript(t, g, "exec sleep 60", time.Minute)
	unix.Kill(g.Pid(), unix.SIGSTOP)
	for range 3 {
		g.Ping()
	}
	if _, err := waitChild(t, child); !errors.Is(err, ErrLost) || running(child.Pid()) {
		t.Error(err)
	}
}

func TestManyStartsThroughTheGuardian(t *testing.T) {
	lock := newTestLock(t)
	var wg sync.WaitGroup
	for i := range 8 {
		g := startGuardianInSlot(t, lock, i)
		wg.Go(func() {
			for j := range 25 {
				code := (8*j + i) % 200
				child, err := g.Start(t.Context(), shell(fmt.Sprintf("exit %d", code)), Key{1, generation.Add(1)}, time.Now().Add(time.Minute))
				if err != nil {
					t.Error(err)
					return
				}
				if exit, err := child.Wait(); err != nil || exit.Code != code || exit.LeftOver != 0 {
					t.Errorf("command %d: %+v, %v", code, exit, err)
				}
			}
		})
	}
	wg.Wait()
	if len(lock.Records()) != 0 {
		t.Errorf("%+v", lock.Records())
	}
}

func TestHookIsNotTakenInByWords(t *testing.T) {
	args := os.Args
	defer func() { os.Args = args }()
	os.Args = []string{"x", guardianArg, "w", "0"} // descriptor 3 of a test program is no socket
	if Guard("test") {
		t.Error("took itself for a guardian")
	}
}

func TestStartThatIsCancelledKills(t *testing.T) {
	g, _ := startGuardian(t)
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		child, err := g.Start(ctx, shell("exec sleep 60"), Key{1, generation.Add(1)}, time.Now().Add(time.Minute))
		if err == nil {
			waitChild(t, child)
		} else if !errors.Is(err, ErrRefused) {
			t.Error(err)
		}
		next, _, _ := startScript(t, g, "exit 3", time.Minute) // the guardian serves on
		if exit, err := waitChild(t, next); exit.Code != 3 || err != nil {
			t.Fatalf("the next command: %+v, %v", exit, err)
		}
	}
}

// The command runs before its start is reported. A stop at that moment is a TERM like any other.
func TestAStartThatIsCancelledGivesTheCommandItsGrace(t *testing.T) {
	g, _ := startGuardian(t)
	for i := range 20 {
		begun := filepath.Join(t.TempDir(), "begun")
		command := shell(`trap 'exit 5' TERM; : >"$0"; while :; do sleep 0.01; done`)
		command.Argv = append(command.Argv, begun)
		command.KillAfter = time.Minute
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			defer cancel()
			for {
				if _, err := os.Stat(begun); err == nil || t.Context().Err() != nil {
					return
				}
			}
		}()
		child, err := g.Start(ctx, command, Key{1, generation.Add(1)}, time.Now().Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		<-ctx.Done()
		_ = child.Terminate(time.Minute) // a second one changes nothing
		if exit, err := waitChild(t, child); exit.Code != 5 || err != nil {
			t.Fatalf("start %d: got %+v, %v, want exit status 5", i, exit, err)
		}
	}
}

// A worker that is stopped reads nothing, and the replies of its guardian fill the socket. That must not hold up the deadline.
func TestDeadlinesAreKeptWhileTheWorkerReadsNothing(t *testing.T) {
	g := &Guardian{options: GuardianOptions{Version: "test", Worker: worker, Lock: newTestLock(t)}} // nobody receives
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
	c := shell("echo $$; exec sleep 60")
	c.Stdout = w
	files, done, err := c.files()
	if err != nil {
		t.Fatal(err)
	}
	var fds []int
	for _, f := range files {
		fds = append(fds, int(f.Fd()))
	}
	err = g.send(request{Op: opStart, Key: Key{7, 1}, Path: c.Path, Argv: c.Argv, Env: c.Env, Dir: "/",
		Deadline: clockAt(time.Now().Add(3 * time.Second))}, unix.UnixRights(fds...))
	done()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	command := line(t, bufio.NewReader(r))
	ping, err := encode(&request{Op: opPing, N: 1 << 60})
	if err != nil {
		t.Fatal(err)
	}
	for range 20_000 { // each has an answer
		if err := g.socket.SetWriteDeadline(time.Now().Add(100 * time.Millisecond)); err != nil {
			t.Fatal(err)
		}
		if _, err := g.socket.Write(ping); err != nil { // a guardian that waits for us reads no more
			break
		}
	}
	testkit.Eventually(t, "the end of the command", func() bool { return !running(command) })
}

// A sweep may kill a command before its guardian, which was stopped, finds that its deadline has passed.
func TestAKillAfterTheDeadlineBelongsToTheDeadline(t *testing.T) {
	for _, test := range []struct {
		left time.Duration
		want string
	}{{-time.Millisecond, byDeadline}, {time.Hour, bySelf}} {
		g := newGuardian(worker, 0, newTestLock(t), -1)
		p, err := Start(shell("kill -9 $$"))
		if err != nil {
			t.Fatal(err)
		}
		if err := awaitExit(p.Pid()); err != nil {
			t.Fatal(err)
		}
		a := &attempt{deadline: monotonic() + int64(test.left), endedBy: bySelf, leader: p.Pid()}
		if exit, leader := g.reap(a, p.Pid()); !leader || exit.Signal != 9 || a.endedBy != test.want {
			t.Errorf("got an end by %s (%+v), want by %s", a.endedBy, exit, test.want)
		}
		ownChildren.Delete(p.Pid())
	}
}

var leftOvers = flag.Int("leftovers", 500, "processes that one command leaves behind at once")

// leaveProcesses leaves so many processes behind, each in a session of its own and without an environment.
func leaveProcesses(n string) {
	count, _ := strconv.Atoi(n)
	for range count {
		attr := &syscall.ProcAttr{Env: []string{}, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true}}
		if _, err := syscall.ForkExec("/bin/sleep", []string{"sleep", "300"}, attr); err != nil {
			panic(err)
		}
	}
	fmt.Println(count)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}

// A command that leaves very many processes behind is rid of all of them, and its bystander starts and ends meanwhile.
func TestVeryManyLeftOversAtOnce(t *testing.T) {
	g, lock := startGuardian(t)
	other := startGuardianInSlot(t, lock, 1)
	in, open, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	c := self(t, "leaveProcesses", strconv.Itoa(*leftOvers))
	c.Stdin, c.Stdout, c.Stderr = in, w, os.Stderr
	child, err := g.Start(t.Context(), c, Key{7, generation.Add(1)}, time.Now().Add(5*time.Minute))
	in.Close()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if got := line(t, bufio.NewReader(out)); got != *leftOvers {
		t.Fatalf("got %d processes, want %d", got, *leftOvers)
	}
	open.Close()
	began := time.Now()
	end := make(chan Exit, 1)
	go func() {
		exit, _ := child.Wait()
		end <- exit
	}()
	var longest time.Duration
	for over := false; !over; {
		at := time.Now()
		bystander, _, _ := startScript(t, other, "exit 0", time.Minute)
		if exit, err := waitChild(t, bystander); exit.Code != 0 || err != nil {
			t.Errorf("the bystander: %+v, %v", exit, err)
		}
		longest = max(longest, time.Since(at))
		select {
		case exit := <-end:
			over = true
			if took := time.Since(began); exit.LeftOver != *leftOvers || took > 10*time.Second {
				t.Errorf("got %d left over, all dead after %v, want %d", exit.LeftOver, took, *leftOvers)
			}
			t.Logf("%d processes were gone after %v; the slowest bystander took %v", *leftOvers, time.Since(began), longest)
		default:
		}
	}
}
