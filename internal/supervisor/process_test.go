//go:build unix

package supervisor

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/runner/test/testkit"
)

// TestMain runs the tests. Some tests start the test program as another
// program, which the first element of argv selects.
func TestMain(m *testing.M) {
	if Guard("test") {
		return
	}
	switch os.Args[0] {
	case "show words":
		fmt.Print(strings.Join(os.Args[1:], "\x00"))
	case "regroup": // regroup leaves a process behind that is in the same session, but in another process group
		c := exec.Command("/bin/sleep", "600")
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := c.Start(); err != nil {
			panic(err)
		}
		fmt.Println(c.Process.Pid)
		if len(os.Args) > 1 {
			time.Sleep(time.Hour)
		}
	case "storm":
		storm(os.Args[1], os.Args[2])
	case "unprivileged worker":
		unprivilegedWorker(os.Args[1])
	case "another user":
		anotherUser(os.Args[1:])
	case "run sweep":
		runSweep(os.Args[1])
	case "leaveProcesses":
		leaveProcesses(os.Args[1])
	case "namespaceInit":
		namespaceInit(os.Args[1])
	case "no descriptors":
		none := unix.Rlimit{Cur: 3, Max: 3}
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
			panic(err)
		}
		_, err := Start(Command{Path: "/bin/sh", Argv: []string{"sh"}, Dir: "/missing"})
		fmt.Print(errors.Is(err, unix.EMFILE), OutOfResources(err))
	default:
		os.Exit(m.Run())
	}
}

// limit bounds the waits in these tests. Only a hang reaches it, also on a busy
// machine. It's far shorter than the commands that the tests must kill.
const limit = testkit.Patience

// self returns a command that runs the test program. The first word selects the
// program that TestMain runs instead of the tests.
func self(t testing.TB, words ...string) Command {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// A program that is built with -race sleeps for a second when it exits,
	// unless GORACE turns this off.
	return Command{Path: path, Argv: words, Env: []string{"GORACE=atexit_sleep_ms=0"}}
}

func shell(script string) Command {
	return Command{Path: "/bin/sh", Argv: []string{"sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin"}}
}

// startPiped starts the command c with its output in a pipe. It closes this
// process's copy of the write end.
func startPiped(t testing.TB, c Command) (*Process, *os.File) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	c.Stdout = w
	p, err := Start(c)
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	return p, r
}

// wait waits until the process p has ended, and returns how it ended. It fails
// the test if Wait does not return in time.
func wait(t testing.TB, p *Process) Exit {
	t.Helper()
	timer := time.AfterFunc(limit, func() {
		t.Errorf("got process %d still running after %v, want it ended", p.Pid(), limit)
		p.Kill()
	})
	defer timer.Stop()
	exit, err := p.Wait()
	if err != nil {
		t.Errorf("Wait: got error %v, want none", err)
	}
	return exit
}

// output runs the command c to its end and returns its output. No left-over
// process may keep the pipe open.
func output(t testing.TB, c Command) (string, Exit) {
	t.Helper()
	p, r := startPiped(t, c)
	var got []byte
	var wg sync.WaitGroup
	wg.Go(func() { got, _ = io.ReadAll(r) })
	exit := wait(t, p)
	wg.Wait()
	return string(got), exit
}

// number reads a number from the output of a command.
func number(t testing.TB, r io.Reader) int {
	t.Helper()
	var n int
	if _, err := fmt.Fscan(r, &n); err != nil {
		t.Fatal(err)
	}
	return n
}

// state returns the state letter of ps, or "" if there is no such process.
func state(pid int) string {
	out, _ := exec.Command("ps", "-o", "stat=", "-p", fmt.Sprint(pid)).Output()
	return strings.TrimSpace(string(out))
}

func gone(pid int) func() bool {
	return func() bool { s := state(pid); return s == "" || strings.HasPrefix(s, "Z") }
}

func TestExitOfCommand(t *testing.T) {
	for _, tt := range []struct {
		script       string
		code, signal int
	}{{"exit 0", 0, 0}, {"exit 3", 3, 0}, {"exit 255", 255, 0}, {"kill -9 $$", -1, 9}, {"kill -15 $$", -1, 15}} {
		if _, exit := output(t, shell(tt.script)); exit.Code != tt.code || exit.Signal != tt.signal {
			t.Errorf("%s: got %+v, want exit status %d, signal %d", tt.script, exit, tt.code, tt.signal)
		}
	}
	_, exit := output(t, shell("i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done"))
	if exit.Usage.User+exit.Usage.System <= 0 {
		t.Errorf("got %+v, want a CPU time above 0", exit)
	}
}

func TestKillEndsWholeGroup(t *testing.T) {
	p, r := startPiped(t, shell("sleep 600 & echo $!; wait"))
	child := number(t, r)
	if err := p.Kill(); err != nil {
		t.Errorf("Kill: got error %v, want none", err)
	}
	if exit := wait(t, p); exit.Code != -1 || exit.Signal != 9 {
		t.Errorf("got %+v, want signal 9", exit)
	}
	testkit.Eventually(t, "the end of the child", gone(child))
}

func TestLeftOverIsKilledWhenLeaderEnds(t *testing.T) {
	p, r := startPiped(t, shell("sleep 600 & echo $!; exit 7"))
	child := number(t, r)
	if exit := wait(t, p); exit.Code != 7 {
		t.Errorf("got %+v, want exit status 7", exit)
	}
	if _, err := io.ReadAll(r); err != nil { // ReadAll returns only when no process holds the pipe
		t.Errorf("read the pipe: got error %v, want none", err)
	}
	testkit.Eventually(t, "the end of the left-over process", gone(child))
}

func TestKillAfterTerminateWasIgnored(t *testing.T) {
	p, r := startPiped(t, shell("trap '' TERM; echo 1; while :; do sleep 600; done"))
	number(t, r)
	if err := p.Terminate(); err != nil {
		t.Errorf("Terminate: got error %v, want none", err)
	}
	ended := make(chan Exit, 1)
	go func() { exit, _ := p.Wait(); ended <- exit }()
	select {
	case exit := <-ended:
		t.Fatalf("got %+v after TERM, want the command still running", exit)
	case <-time.After(50 * time.Millisecond):
	}
	if err := p.Kill(); err != nil {
		t.Errorf("Kill: got error %v, want none", err)
	}
	select {
	case exit := <-ended:
		if exit.Signal != 9 {
			t.Errorf("got %+v, want signal 9", exit)
		}
	case <-time.After(limit):
		t.Errorf("got a command that still runs after %v, want it ended", limit)
	}
}

func TestTerminateEndsStoppedProcess(t *testing.T) {
	p, err := Start(shell("kill -STOP $$; sleep 600"))
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the stop of the process", func() bool { return strings.HasPrefix(state(p.Pid()), "T") })
	if err := p.Terminate(); err != nil {
		t.Errorf("Terminate: got error %v, want none", err)
	}
	if exit := wait(t, p); exit.Signal != int(unix.SIGTERM) {
		t.Errorf("got %+v, want signal %d", exit, unix.SIGTERM)
	}
}

func TestLateSignalsDoNothing(t *testing.T) {
	p, err := Start(shell("exit 0"))
	if err != nil {
		t.Fatal(err)
	}
	wait(t, p)
	if err := errors.Join(p.Kill(), p.Terminate()); err != nil {
		t.Errorf("Kill and Terminate after the end: got error %v, want none", err)
	}
}

func TestWaitFailsAfterOtherCodeHasReapedChild(t *testing.T) {
	p, err := start("/bin/sh", []string{"sh", "-c", "exit 0"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	var status unix.WaitStatus
	for err = unix.EINTR; err == unix.EINTR; {
		_, err = unix.Wait4(p.Pid(), &status, 0, nil)
	}
	if _, err := p.wait(); !errors.Is(err, unix.ECHILD) {
		t.Errorf("got error %v, want %v", err, unix.ECHILD)
	}
	if err := p.Kill(); err != nil {
		t.Errorf("Kill: got error %v, want none", err)
	}
}

func TestSignalsRaceWithEnd(t *testing.T) {
	var wg sync.WaitGroup
	for i := range 50 {
		p, err := Start(shell("exit 0"))
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if exit := wait(t, p); exit.Code != 0 && !slices.Contains([]int{9, 15}, exit.Signal) {
				t.Errorf("got %+v, want exit status 0, signal 9 or signal 15", exit)
			}
		})
		for range i % 5 {
			err := errors.Join(p.Terminate(), p.Kill())
			if err != nil && !(runtime.GOOS == "darwin" && errors.Is(err, unix.EPERM)) { // macOS returns EPERM if only a zombie is left
				t.Errorf("Terminate and Kill: got error %v, want none", err)
			}
		}
	}
	wg.Wait()
}

func BenchmarkStartWait(b *testing.B) {
	path, err := exec.LookPath("true")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		p, err := Start(Command{Path: path, Argv: []string{"true"}})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := p.Wait(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkExec measures the start and the end of a command with the standard
// library alone. That command has no session of its own, and nothing looks for
// left-over processes.
func BenchmarkExec(b *testing.B) {
	for b.Loop() {
		if err := exec.Command("true").Run(); err != nil {
			b.Fatal(err)
		}
	}
}
