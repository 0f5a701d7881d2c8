package supervisor

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// unprivilegedWorker is a worker of a user other than root. Its commands may
// change to other users, as sudo does. It runs a command that leaves a process
// of another user behind, and prints the result.
func unprivilegedWorker(path string) {
	lock, err := NewLock(path)
	if err != nil {
		panic(err)
	}
	g, err := testGuardians("w", lock).startGuardian(0)
	if err != nil {
		panic(err)
	}
	c := Command{Path: "/proc/self/exe", Argv: []string{"another user", "leave"}, Stdout: os.Stdout}
	child, err := g.start(c, Key{1, 1}, time.Now().Add(5*time.Minute))
	if err != nil {
		panic(err)
	}
	exit, err := child.Wait()
	for _, p := range exit.Denied {
		fmt.Println("left:", p.PID, p.UID, p.State)
	}
	fmt.Println("ended:", exit.Code, err, lock.Clean(), isIdle(g))
	fmt.Println("closed:", g.close())
}

// anotherUser starts a child and exits before the child. The child changes to
// another user. If words is empty, this process is the child.
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
	line, err := bufio.NewReader(r).ReadString('\n') // the child prints this line when it belongs to another user
	if err != nil {
		panic(err)
	}
	fmt.Print(line)
	_ = p.Release()
}

const workerUID, otherUID = 54321, 54322

// startUnprivileged starts a worker of a user other than root in a cgroup. It
// returns a function that reads a line of the worker's output.
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
			t.Fatalf("read from the worker: got %q and error %v, want a line", text, err)
		}
		return strings.TrimSpace(text)
	}
}

func TestProcessOfAnotherUserIsNotWaitedFor(t *testing.T) {
	needsRoot(t)
	readLine := startUnprivileged(t, &syscall.SysProcAttr{})
	pid, err := strconv.Atoi(readLine())
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Kill(pid, unix.SIGKILL)
	for _, want := range []string{fmt.Sprintf("left: %d %d S", pid, otherUID), "ended: 0 <nil> true false", "closed: <nil>"} {
		if got := readLine(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if !running(pid) {
		t.Error("the process of another user is dead; want it alive")
	}
}

// TestProcessOfAnotherUserIsKilledByItsCgroup checks that a worker with a
// delegated cgroup also kills the processes of other users.
func TestProcessOfAnotherUserIsKilledByItsCgroup(t *testing.T) {
	needsRoot(t)
	dir := filepath.Join(ownCgroup(), worker+"-delegated")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	// The cgroup can be removed only after the worker in it has ended. Cleanups
	// run in reverse order.
	t.Cleanup(func() { removeCgroup(dir) })
	for _, file := range []string{dir, filepath.Join(dir, "cgroup.procs")} { // delegate the cgroup as systemd does, by a change of owner
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
	pid, err := strconv.Atoi(readLine())
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Kill(pid, unix.SIGKILL)
	for _, want := range []string{"ended: 0 <nil> true true", "closed: <nil>"} {
		if got := readLine(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	if running(pid) {
		t.Error("the process of another user is alive; want it dead")
	}
	if left, _ := filepath.Glob(dir + "/runner-*"); len(left) > 0 {
		t.Errorf("got cgroups %v, want none", left)
	}
}

func needsRoot(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root may change to another user")
	}
}

// runSweep calls Sweep for a worker and prints the result. It runs as a child
// of namespaceInit, so it is in another pid namespace than the test.
func runSweep(worker string) {
	fmt.Print(Sweep(worker, []Key{{1, 1}}, ""))
}

// namespaceInit is the first process of a pid namespace, so it ignores a
// SIGKILL from within that namespace. It has a mark of the worker.
func namespaceInit(worker string) {
	if err := unix.Mount("none", "/proc", "proc", 0, ""); err != nil {
		panic(err)
	}
	c := exec.Command("/proc/self/exe")
	c.Args, c.Stdout, c.Stderr = []string{"run sweep", worker}, os.Stdout, os.Stderr
	if err := c.Run(); err != nil {
		panic(err)
	}
}

// TestSweepReportsProcessThatDoesNotDie calls Sweep for a worker with a process
// that survives SIGKILL. Sweep must return false, so that no worker releases
// the task of that process.
func TestSweepReportsProcessThatDoesNotDie(t *testing.T) {
	needsRoot(t)
	c := exec.Command("/proc/self/exe")
	c.Args, c.Stderr = []string{"namespaceInit", worker}, os.Stderr
	c.Env = append(Mark{worker, Key{1, 1}}.Environ(), "GORACE=atexit_sleep_ms=0")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS, Unshareflags: unix.CLONE_NEWNS}
	if out, err := c.Output(); err != nil || string(out) != "false" {
		t.Errorf("got %q, error %v; want \"false\"", out, err)
	}
}
