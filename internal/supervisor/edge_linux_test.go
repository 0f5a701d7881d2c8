package supervisor

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

	"example.com/runner/internal/testkit"
)

// A command is killed when the thread that forked it ends: so that one must not, whatever its guardian has to do meanwhile.
func TestACommandOutlivesWhatItsGuardianDoesBesideIt(t *testing.T) {
	g, _ := startGuardian(t)
	garbage := "GARBAGE=" + strings.Repeat("x", 32<<10) // the collector of the guardian has something to do
	for range 200 {
		c := Command{Path: "/bin/true", Argv: []string{"true"}, Env: []string{garbage}}
		child, err := g.Start(t.Context(), c, Key{1, generation.Add(1)}, time.Now().Add(5*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		if exit, err := child.Wait(); err != nil || exit.Code != 0 || exit.Signal != 0 {
			t.Fatalf("%+v, %v", exit, err)
		}
	}
	bystander, key, _ := startScript(t, g, "exec sleep 300", 5*time.Minute)
	for range 200 {
		g.Renew([]Key{key}, time.Now().Add(5*time.Minute))
		g.Ping()
		testkit.Eventually(t, "an answer", func() bool { return g.lastPong.Load() == g.pingsSent.Load() })
	}
	if !running(bystander.Pid()) {
		t.Error("it has died")
	}
	bystander.Kill()
	if _, err := waitChild(t, bystander); err != nil {
		t.Error(err)
	}
}

// hold makes every exec of a file hang, until what it returns is called: whoever opens it waits for the holder of the lease to give it up,
// as one does for a server that does not answer.
func blockExec(t *testing.T, path string) (release func()) {
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
func copySleep(t *testing.T) string {
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

func TestAnExecThatHangsIsKilledAtItsDeadlineAndWithItsWorker(t *testing.T) {
	path := copySleep(t)
	g, lock := startGuardian(t)
	hang := func() (result chan error, key Key, release func()) {
		release = blockExec(t, path)
		result, key = make(chan error, 1), Key{9, generation.Add(1)}
		go func() {
			child, err := g.Start(context.Background(), Command{Path: path, Argv: []string{"sleep", "300"}}, key, time.Now().Add(5*time.Minute))
			if err == nil {
				_, err = child.Wait()
			}
			result <- err
		}()
		testkit.Eventually(t, "the start", func() bool { return len(childrenOfProcess(g.Pid())) == 1 })
		g.Ping()
		testkit.Eventually(t, "an answer", func() bool { return g.lastPong.Load() == g.pingsSent.Load() })
		return result, key, release
	}
	result, key, release := hang()
	defer release()
	g.Renew([]Key{key}, time.Now().Add(100*time.Millisecond))
	select {
	case err := <-result:
		if !errors.Is(err, ErrDeadline) {
			t.Errorf("got %v, want %v", err, ErrDeadline)
		}
	case <-time.After(limit):
		t.Fatal("it lives beyond its deadline")
	}
	release()

	result, _, release = hang()
	defer release()
	if err := g.Close(); err != nil || !lock.Clean() {
		t.Errorf("got %v, records %+v, want none", err, lock.Records())
	}
	<-result
}

// childrenOfProcess lists the living children of another process.
func childrenOfProcess(parent int) (list []int) {
	for _, pid := range processes() {
		if field := statFields(pid); len(field) > 1 && string(field[1]) == strconv.Itoa(parent) && running(pid) {
			list = append(list, pid)
		}
	}
	return list
}

// Processes that never stand still: each starts the next one, in a session of its own, and ends.
func TestTheKillingOfWhatForksAllTheTimeComesToAnEnd(t *testing.T) {
	t.Run("alone", func(t *testing.T) {
		g, _ := startGuardian(t)
		killForkers(t, g)
	})
	t.Run("beside another", func(t *testing.T) {
		g, lock := startGuardian(t)
		other, _, _ := startScript(t, startGuardianInSlot(t, lock, 1), "exec sleep 300", 5*time.Minute)
		killForkers(t, g)
		other.Kill()
		waitChild(t, other)
	})
}

func killForkers(t *testing.T, g *Guardian) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "run")
	if err := os.WriteFile(file, []byte(`echo >>"$0.log"; test -e "$0.stop" || setsid sh "$0" & exit`), 0o600); err != nil {
		t.Fatal(err)
	}
	defer os.WriteFile(file+".stop", nil, 0o600) // if it fails
	child, _, r := startScript(t, g, `for i in 1 2 3 4 5 6 7 8 9 10; do sh `+file+` & done; wait; echo 1; exec sleep 300`, 5*time.Minute)
	line(t, r)
	logSize := func() int64 {
		info, err := os.Stat(file + ".log")
		if err != nil {
			return 0
		}
		return info.Size()
	}
	testkit.Eventually(t, "they move", func() bool { return logSize() > 50 })
	child.Kill()
	if exit, err := waitChild(t, child); err != nil || exit.Signal != 9 {
		t.Errorf("%+v, %v", exit, err)
	}
	before := logSize()
	next, _, _ := startScript(t, g, "sleep 0.3", 5*time.Minute)
	waitChild(t, next)
	if n := logSize(); n != before {
		t.Errorf("%d steps after the end", n-before)
	}
}

// unprivilegedWorker is a worker of another user than root, which may change to others, as sudo does. It runs a command that leaves a process of
// another user behind, and says what came of it.
func unprivilegedWorker(path string) {
	lock, err := NewLock(path)
	if err != nil {
		panic(err)
	}
	g, err := StartGuardian(GuardianOptions{Version: "test", Worker: "w", Lock: lock})
	if err != nil {
		panic(err)
	}
	c := Command{Path: "/proc/self/exe", Argv: []string{"another user", "leave"}, Stdout: os.Stdout}
	child, err := g.Start(context.Background(), c, Key{1, 1}, time.Now().Add(5*time.Minute))
	if err != nil {
		panic(err)
	}
	exit, err := child.Wait()
	for _, p := range exit.Denied {
		fmt.Println("left:", p.PID, p.UID, p.State)
	}
	fmt.Println("ended:", exit.Code, err, lock.Clean(), g.Idle())
	fmt.Println("closed:", g.Close())
}

// anotherUser leaves a child behind that becomes another user, or is that child.
func anotherUser(words []string) {
	if len(words) == 0 {
		if err := syscall.Setresuid(otherUID, otherUID, otherUID); err != nil {
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

// lesser starts a unprivileged worker in a cgroup, and returns how to readLine what it says.
func startUnprivileged(t *testing.T, group *syscall.SysProcAttr) (readLine func() string) {
	t.Helper()
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
	group.Credential, group.AmbientCaps = &syscall.Credential{Uid: workerUID, Gid: workerUID}, []uintptr{capSetuid}
	path := filepath.Join(dir, fmt.Sprintf("%s-%d.lock", worker, generation.Add(1)))
	p, err := os.StartProcess("/proc/self/exe", []string{"unprivileged worker", path}, &os.ProcAttr{Files: []*os.File{nil, out, out},
		Env: []string{"GORACE=atexit_sleep_ms=0"}, Dir: "/", Sys: group})
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
	return func() string {
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
}

func TestAProcessOfAnotherUserIsNotWaitedFor(t *testing.T) {
	needsRoot(t)
	readLine := startUnprivileged(t, &syscall.SysProcAttr{})
	otherUsers, err := strconv.Atoi(readLine())
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	defer unix.Kill(otherUsers, unix.SIGKILL)
	for _, want := range []string{fmt.Sprintf("left: %d %d S", otherUsers, otherUID), "ended: 0 <nil> true false", "closed: <nil>"} {
		if got := readLine(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if took := time.Since(began); took > 5*time.Second { // 0.25 s on a machine that has nothing else to do
		t.Errorf("the end was reported after %v", took)
	}
	if !running(otherUsers) {
		t.Error("it was killed all the same")
	}
}

// A worker that was given a cgroup kills the processes of other users, too.
func TestAProcessOfAnotherUserIsKilledByItsCgroup(t *testing.T) {
	needsRoot(t)
	dir := filepath.Join(ownCgroup(), worker+"-delegated")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	// The cgroup can be removed when the process that lesser starts in it has ended: cleanups run in reverse order.
	t.Cleanup(func() { removeCgroup(dir) })
	for _, file := range []string{dir, filepath.Join(dir, "cgroup.procs")} { // as systemd delegates
		if err := os.Chown(file, workerUID, workerUID); err != nil {
			t.Fatal(err)
		}
	}
	group, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer group.Close()
	readLine := startUnprivileged(t, &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())})
	otherUsers, err := strconv.Atoi(readLine())
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Kill(otherUsers, unix.SIGKILL)
	for _, want := range []string{"ended: 0 <nil> true true", "closed: <nil>"} {
		if got := readLine(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if running(otherUsers) {
		t.Error("it lives")
	}
	if left, _ := filepath.Glob(dir + "/runner-*"); len(left) > 0 {
		t.Errorf("cgroups are left: %v", left)
	}
}

func needsRoot(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root may become others")
	}
}

// No room for another descriptor is no fault of the command, nor of its neighbours, and passes.
func TestWantOfDescriptorsIsTrouble(t *testing.T) {
	g, lock := startGuardian(t)
	bystander, _, _ := startScript(t, startGuardianInSlot(t, lock, 1), "exec sleep 300", 5*time.Minute)
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
	if child, err := start(); !OutOfResources(err) {
		t.Errorf("%+v, %v", child, err)
	}
	if err := unix.Prlimit(g.Pid(), unix.RLIMIT_NOFILE, &most, nil); err != nil {
		t.Fatal(err)
	}
	child, err := start()
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := waitChild(t, child); exit.Code != 3 || err != nil {
		t.Errorf("%+v, %v", exit, err)
	}
	if !running(bystander.Pid()) {
		t.Error("a bystander has died of it")
	}
}

// sweeper sweeps for the processes of a worker, and says what came of it. As the child of namespaceInit it has a pid namespace to itself.
func runSweep(worker string) {
	denied, clean := Sweep(worker, nil, nil)
	for _, p := range denied {
		fmt.Print(p.PID, " ", p.UID, " ")
	}
	fmt.Print(clean)
}

// namespaceInit is the first process of a pid namespace, and so ignores a SIGKILL from there. It has a mark of the worker.
func namespaceInit(worker string) {
	if err := errors.Join(unix.Mount("none", "/proc", "proc", 0, ""), SetMark(0, MarkOf(worker, Key{1, 1}))); err != nil {
		panic(err)
	}
	c := exec.Command("/proc/self/exe")
	c.Args, c.Stdout, c.Stderr = []string{"run sweep", worker}, os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		panic(err)
	}
}

// A process that does not die of SIGKILL is still there after a sweep, and the sweep says so: its task stays where it is.
func TestASweepSaysThatSomethingDoesNotDie(t *testing.T) {
	needsRoot(t)
	c := exec.Command("/proc/self/exe")
	c.Args, c.Env, c.Stderr = []string{"namespaceInit", worker}, []string{"GORACE=atexit_sleep_ms=0"}, os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS, Unshareflags: unix.CLONE_NEWNS}
	if out, err := c.Output(); err != nil || string(out) != "false" {
		t.Errorf("got %q, %v, want false", out, err)
	}
}

// Sweep does not wait for a process that it may not kill, and names it.
func TestASweepNamesProcessesOfOtherUsers(t *testing.T) {
	needsRoot(t)
	stays, _ := startPiped(t, Command{Path: "/bin/sleep", Argv: []string{"sleep", "60"}})
	defer func() {
		stays.Kill()
		wait(t, stays)
	}()
	if err := SetMark(stays.Pid(), MarkOf(worker, Key{1, 1})); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("/proc/self/exe")
	c.Args, c.Env, c.Dir, c.Stderr = []string{"run sweep", worker}, []string{"GORACE=atexit_sleep_ms=0"}, "/", os.Stderr
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: otherUID, Gid: otherUID}}
	out, err := c.Output()
	if want := fmt.Sprintf("%d 0 true", stays.Pid()); err != nil || string(out) != want {
		t.Errorf("got %q, %v, want %q", out, err, want)
	}
	if !running(stays.Pid()) {
		t.Error("it was killed all the same")
	}
}
