package process

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// A command is killed when the thread that forked it ends: so that one must not, whatever the guardian has to do meanwhile.
func TestCommandsOutliveAThousandOtherStarts(t *testing.T) {
	g, _ := guarded(t)
	var steady []*Child
	for range 20 {
		child, _, _ := bear(t, g, "exec sleep 300", 5*time.Minute)
		steady = append(steady, child)
	}
	garbage := "GARBAGE=" + strings.Repeat("x", 32<<10) // the collector of the guardian has something to do
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 125 {
				c := Command{Path: "/bin/true", Argv: []string{"true"}, Env: []string{garbage}}
				child, err := g.Start(t.Context(), c, Key{1, generation.Add(1)}, time.Now().Add(5*time.Minute))
				if err != nil {
					t.Error(err)
					return
				}
				if exit, err := child.Wait(); err != nil || exit.Code != 0 || exit.Signal != 0 {
					t.Errorf("%+v, %v", exit, err)
				}
			}
		})
	}
	all.Wait()
	for _, child := range steady {
		if !running(child.Pid()) {
			t.Error("one has died")
		}
		child.Kill()
		if _, err := ends(t, child); err != nil {
			t.Error(err)
		}
	}
}

// hold makes every exec of a file hang, until what it returns is called: whoever opens it waits for the holder of the lease to give it up,
// as one does for a server that does not answer.
func hold(t *testing.T, path string) (release func()) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Fatal("lease:", err)
	}
	return sync.OnceFunc(func() { file.Close() })
}

// slow is a program whose exec can be made to hang.
func slow(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("/bin/sleep")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "sleep")
	if err := os.WriteFile(path, text, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAnExecThatHangsHoldsUpNoDeadlineAndNoEnd(t *testing.T) {
	path := slow(t)
	g, lock := guarded(t)
	doomed, key, r := bear(t, g, "setsid -f sh -c 'echo $$; exec sleep 300'; exec sleep 300", 5*time.Minute)
	left := line(t, r)
	ended, _, _ := bear(t, g, "while ! test -e "+path+".end; do sleep 0.01; done; exit 7", 5*time.Minute)
	release := hold(t, path)
	defer release()
	type born struct {
		child *Child
		err   error
	}
	hangs := make(chan born, 1)
	go func() {
		child, err := g.Start(context.Background(), Command{Path: path, Argv: []string{"sleep", "300"}}, Key{9, 9}, time.Now().Add(5*time.Minute))
		hangs <- born{child, err}
	}()
	eventually(t, "the start", func() bool { return len(childrenOfProcess(g.Pid())) == 4 }) // the two, what one has left, and this one
	g.Renew([]Key{key}, time.Now().Add(100*time.Millisecond))
	if err := os.WriteFile(path+".end", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if exit, err := ends(t, ended); exit.Code != 7 || err != nil {
		t.Errorf("%+v, %v", exit, err)
	}
	if _, err := ends(t, doomed); !errors.Is(err, ErrDeadline) || running(left) {
		t.Error(err)
	}
	g.Ping()
	eventually(t, "an answer", func() bool { return g.answered.Load() == g.asked.Load() })
	select {
	case b := <-hangs:
		t.Fatalf("it did not hang: %+v", b)
	default:
	}
	release()
	b := <-hangs
	if b.err != nil {
		t.Fatal(b.err)
	}
	b.child.Kill()
	ends(t, b.child)

	// The worker goes while one hangs: nothing is left.
	release = hold(t, path)
	defer release()
	go func() {
		child, err := g.Start(context.Background(), Command{Path: path, Argv: []string{"sleep", "300"}}, Key{9, 10}, time.Now().Add(5*time.Minute))
		hangs <- born{child, err}
	}()
	eventually(t, "the start", func() bool { return len(childrenOfProcess(g.Pid())) > 0 })
	if err := g.Close(); err != nil || lock.Mark() != Clean {
		t.Error(err)
	}
	if b := <-hangs; b.err == nil {
		ends(t, b.child)
	}
}

// childrenOfProcess lists the living children of another process.
func childrenOfProcess(parent int) (list []int) {
	for _, pid := range processes() {
		if field := statOf(pid); len(field) > 1 && string(field[1]) == strconv.Itoa(parent) && running(pid) {
			list = append(list, pid)
		}
	}
	return list
}

// Processes that never stand still: each starts the next one, in a session of its own, and ends.
func TestTheKillingOfWhatForksAllTheTimeComesToAnEnd(t *testing.T) {
	t.Run("alone", func(t *testing.T) {
		g, _ := guarded(t)
		killForkers(t, g)
	})
	t.Run("beside another", func(t *testing.T) {
		g, _ := guarded(t)
		other, _, _ := bear(t, g, "exec sleep 300", 5*time.Minute)
		killForkers(t, g)
		other.Kill()
		ends(t, other)
	})
}

func killForkers(t *testing.T, g *Guardian) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run")
	if err := os.WriteFile(file, []byte(`echo >>"$0.log"; test -e "$0.stop" || setsid sh "$0" & exit`), 0o600); err != nil {
		t.Fatal(err)
	}
	defer os.WriteFile(file+".stop", nil, 0o600) // if it fails
	child, _, r := bear(t, g, `for i in 1 2 3 4 5 6 7 8 9 10; do sh `+file+` & done; wait; echo 1; exec sleep 300`, 5*time.Minute)
	line(t, r)
	steps := func() int64 {
		info, err := os.Stat(file + ".log")
		if err != nil {
			return 0
		}
		return info.Size()
	}
	eventually(t, "they move", func() bool { return steps() > 50 })
	child.Kill()
	if exit, err := ends(t, child); err != nil || exit.Signal != 9 {
		t.Errorf("%+v, %v", exit, err)
	}
	before := steps()
	next, _, _ := bear(t, g, "sleep 0.3", 5*time.Minute)
	ends(t, next)
	if n := steps(); n != before {
		t.Errorf("%d steps after the end", n-before)
	}
}

// lesserWorker is a worker of another user than root, which may change to others, as sudo does. It runs a command that leaves a process of
// another user behind, and says what came of it.
func lesserWorker(path string) {
	lock, err := NewLock(path)
	if err != nil {
		panic(err)
	}
	g, err := StartGuardian(GuardianOptions{Version: "test", Worker: "w", Lock: lock})
	if err != nil {
		panic(err)
	}
	c := Command{Path: "/proc/self/exe", Argv: []string{"another user", "leave"}, Stdout: os.Stdout, Env: []string{workerTag + "w", idTag + "1", generationTag + "1"}}
	child, err := g.Start(context.Background(), c, Key{1, 1}, time.Now().Add(5*time.Minute))
	if err != nil {
		panic(err)
	}
	exit, err := child.Wait()
	fmt.Println("ended:", exit.Code, err)
	fmt.Println("closed:", g.Close(), string(lock.Mark()))
}

// anotherUser leaves a child behind that becomes another user, or is that child, or one that only looks like another user.
func anotherUser(words []string) {
	if len(words) == 0 || words[0] == "looks" {
		real := otherUID
		if len(words) > 0 {
			real = 0
		}
		if err := syscall.Setresuid(real, otherUID, real); err != nil {
			panic(err)
		}
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil { // else /proc shows root as its owner
			panic(err)
		}
		fmt.Println(os.Getpid())
		time.Sleep(5 * time.Minute)
		return
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		panic(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		panic(err)
	}
	p, err := os.StartProcess("/proc/self/exe", []string{"another user"}, &os.ProcAttr{Env: os.Environ(), Files: []*os.File{null, w, null}})
	if err != nil {
		panic(err)
	}
	line, err := bufio.NewReader(r).ReadString('\n') // it is the other one now
	if err != nil {
		panic(err)
	}
	fmt.Print(line)
	_ = p.Release()
}

const workerUID, otherUID = 54321, 54322

func TestAProcessOfAnotherUserIsNotWaitedFor(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may become others")
	}
	dir := t.TempDir()
	for _, d := range []string{filepath.Dir(dir), dir} {
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	read, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	const capSetuid = 7
	p, err := os.StartProcess("/proc/self/exe", []string{"lesser worker", filepath.Join(dir, "x.lock")}, &os.ProcAttr{Files: []*os.File{nil, out, out},
		Env: []string{"GORACE=atexit_sleep_ms=0"}, Dir: "/", Sys: &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: workerUID, Gid: workerUID}, AmbientCaps: []uintptr{capSetuid}}})
	out.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Kill()
		_, _ = p.Wait()
		read.Close()
	})
	lines := bufio.NewReader(read)
	hear := func() string {
		t.Helper()
		if err := read.SetReadDeadline(time.Now().Add(limit)); err != nil {
			t.Fatal(err)
		}
		text, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%q, %v", text, err)
		}
		return strings.TrimSpace(text)
	}
	stranger, err := strconv.Atoi(hear())
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Kill(stranger, unix.SIGKILL)
	if text := hear(); text != fmt.Sprintf("guardian: process %d of another user has outlived its command", stranger) {
		t.Error(text)
	}
	if text := hear(); text != "ended: 0 <nil>" {
		t.Error(text)
	}
	if text := hear(); text != "guardian: processes of another user are left running" {
		t.Error(text)
	}
	if text := hear(); text != "closed: <nil> C" {
		t.Error(text)
	}
	if !running(stranger) || owner(stranger) != otherUID {
		t.Error("it was hit all the same")
	}
}

// No room for another descriptor is no fault of the command, nor of its neighbours, and passes.
func TestWantOfDescriptorsIsTrouble(t *testing.T) {
	g, _ := guarded(t)
	steady, _, _ := bear(t, g, "exec sleep 300", 5*time.Minute)
	var most unix.Rlimit
	if err := unix.Prlimit(g.Pid(), unix.RLIMIT_NOFILE, nil, &most); err != nil {
		t.Fatal(err)
	}
	few := unix.Rlimit{Cur: 6, Max: most.Max}
	if err := unix.Prlimit(g.Pid(), unix.RLIMIT_NOFILE, &few, nil); err != nil {
		t.Fatal(err)
	}
	start := func() (*Child, error) {
		return g.Start(t.Context(), shell("exit 3"), Key{1, generation.Add(1)}, time.Now().Add(5*time.Minute))
	}
	if child, err := start(); !Trouble(err) {
		t.Errorf("%+v, %v", child, err)
	}
	if err := unix.Prlimit(g.Pid(), unix.RLIMIT_NOFILE, &most, nil); err != nil {
		t.Fatal(err)
	}
	child, err := start()
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := ends(t, child); exit.Code != 3 || err != nil {
		t.Errorf("%+v, %v", exit, err)
	}
	if !running(steady.Pid()) {
		t.Error("a neighbour has died of it")
	}
}

// sweeper sweeps for a process that its lock file has a record of.
func sweeper(text string) {
	pid, _ := strconv.Atoi(text)
	fmt.Print(Sweep("w", nil, []Record{{Key{1, 1}, pid, started(pid)}}))
}

// What cannot be killed is still there after a sweep, and the sweep says so: its task stays where it is. Here it is a process with the
// rights of root that looks like one of this user; one that hangs in the kernel cannot be had for a test.
func TestASweepSaysThatSomethingCannotBeKilled(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may become others")
	}
	stays, r := startPiped(t, Command{Path: "/proc/self/exe", Argv: []string{"another user", "looks"}})
	defer func() {
		stays.Kill()
		wait(t, stays)
	}()
	pid := number(t, r)
	out := &strings.Builder{}
	c := exec.Command("/proc/self/exe")
	c.Args, c.Env, c.Dir, c.Stdout, c.Stderr = []string{"sweeper", strconv.Itoa(pid)}, []string{"GORACE=atexit_sleep_ms=0"}, "/", out, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: otherUID, Gid: otherUID}}
	if err := c.Run(); err != nil || out.String() != "false" {
		t.Error(out, err)
	}
	if !running(pid) {
		t.Error("it was killed all the same")
	}
}
