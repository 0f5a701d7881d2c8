package supervisor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/runner/test/testkit"
)

// TestCommandOutlivesOtherWorkOfItsGuardian checks that a command continues
// while its guardian does other work. The kernel kills a command when the
// thread that forked it ends, so this thread must not end.
func TestCommandOutlivesOtherWorkOfItsGuardian(t *testing.T) {
	g, _ := startGuardian(t)
	garbage := "GARBAGE=" + strings.Repeat("x", 32<<10) // the large environment makes the garbage collector of the guardian run
	for range 200 {
		c := Command{Path: "/bin/true", Argv: []string{"true"}, Env: []string{garbage}}
		child, err := g.start(c, Key{1, generation.Add(1)}, time.Now().Add(5*time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		if exit, err := child.Wait(); err != nil || exit.Code != 0 || exit.Signal != 0 {
			t.Fatalf("got %+v, error %v; want exit status 0", exit, err)
		}
	}
	bystander, key, _ := startScript(t, g, "exec sleep 300", 5*time.Minute)
	pid := leader(t, bystander)
	for range 200 {
		g.renew([]Key{key}, time.Now().Add(5*time.Minute))
		testkit.Eventually(t, "the answer to a ping", func() bool { return g.lastPong.Load() == g.renewals.Load() })
	}
	if !running(pid) {
		t.Error("the command is dead; want it alive")
	}
	bystander.Kill()
	if _, err := waitChild(t, bystander); err != nil {
		t.Errorf("got error %v, want none", err)
	}
}

// blockExec makes every exec of a file block until release is called, like a
// file server that does not answer. It takes a file lease: another process that
// opens the file then waits until the lease is given up.
func blockExec(t *testing.T, path string) (release func()) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.FcntlInt(file.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Fatal("take the lease:", err)
	}
	return sync.OnceFunc(func() { file.Close() })
}

// copySleep returns the path of a program whose exec the test can block.
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

func TestBlockedExecIsKilledAtItsDeadlineAndWithItsWorker(t *testing.T) {
	path := copySleep(t)
	g, lock := startGuardian(t)
	hang := func() (result chan error, key Key, release func()) {
		release = blockExec(t, path)
		result, key = make(chan error, 1), Key{9, generation.Add(1)}
		go func() {
			child, err := g.start(Command{Path: path, Argv: []string{"sleep", "300"}}, key,
				time.Now().Add(5*time.Minute))
			if err == nil {
				_, err = child.Wait()
			}
			result <- err
		}()
		testkit.Eventually(t, "the start", func() bool { return len(childrenOfProcess(g.process.Pid)) == 1 })
		g.renew(nil, time.Time{})
		testkit.Eventually(t, "the answer to a ping", func() bool { return g.lastPong.Load() == g.renewals.Load() })
		return result, key, release
	}
	result, key, release := hang()
	defer release()
	g.renew([]Key{key}, time.Now().Add(100*time.Millisecond))
	select {
	case err := <-result:
		if !errors.Is(err, ErrDeadline) {
			t.Errorf("got %v, want %v", err, ErrDeadline)
		}
	case <-time.After(limit):
		t.Fatalf("got a command that still runs %v after its deadline, want it ended", limit)
	}
	release()

	result, _, release = hang()
	defer release()
	if err := g.close(); err != nil || !lock.Clean() {
		t.Errorf("got error %v, records %+v; want neither", err, recordsOf(lock.Path()))
	}
	<-result
}

// childrenOfProcess returns the living children of another process.
func childrenOfProcess(parent int) (list []int) {
	for _, pid := range processes() {
		if parentOf(pid) == parent && running(pid) {
			list = append(list, pid)
		}
	}
	return list
}

// TestCommandThatForksAllTimeIsKilledCompletely kills a command whose processes
// fork all the time: each process starts the next one in a new session and
// exits.
func TestCommandThatForksAllTimeIsKilledCompletely(t *testing.T) {
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
	// When this file exists, the processes of the script start no others. The
	// test creates it even if it fails, so that they end.
	defer os.WriteFile(file+".stop", nil, 0o600)
	child, _, r := startScript(t, g, `for i in 1 2 3 4 5 6 7 8 9 10; do sh `+file+` & done; wait; echo 1; exec sleep 300`, 5*time.Minute)
	line(t, r)
	logSize := func() int64 {
		info, err := os.Stat(file + ".log")
		if err != nil {
			return 0
		}
		return info.Size()
	}
	testkit.Eventually(t, "50 bytes in the log of the processes", func() bool { return logSize() > 50 })
	child.Kill()
	if exit, err := waitChild(t, child); err != nil || exit.Signal != 9 {
		t.Errorf("got %+v, error %v; want signal 9", exit, err)
	}
	before := logSize()
	next, _, _ := startScript(t, g, "sleep 0.3", 5*time.Minute)
	waitChild(t, next)
	if n := logSize(); n != before {
		t.Errorf("got %d bytes in the log after the end, want %d", n, before)
	}
}

// TestLackOfDescriptorsIsResourceError starts commands while a guardian has no
// free descriptors. The error must be a resource error and not an error of the
// command. It must not affect other commands. Commands start again when
// descriptors are free.
func TestLackOfDescriptorsIsResourceError(t *testing.T) {
	g, lock := startGuardian(t)
	bystander, _, _ := startScript(t, startGuardianInSlot(t, lock, 1), "exec sleep 300", 5*time.Minute)
	pid := leader(t, bystander)
	var most unix.Rlimit
	if err := unix.Prlimit(g.process.Pid, unix.RLIMIT_NOFILE, nil, &most); err != nil {
		t.Fatal(err)
	}
	few := unix.Rlimit{Cur: 6, Max: most.Max}
	if err := unix.Prlimit(g.process.Pid, unix.RLIMIT_NOFILE, &few, nil); err != nil {
		t.Fatal(err)
	}
	if exit, err := startAndWait(t, g, shell("exit 3"), 5*time.Minute); !OutOfResources(err) {
		t.Errorf("got %+v, error %v; want an error for which OutOfResources is true", exit, err)
	}
	if err := unix.Prlimit(g.process.Pid, unix.RLIMIT_NOFILE, &most, nil); err != nil {
		t.Fatal(err)
	}
	if exit, err := startAndWait(t, g, shell("exit 3"), 5*time.Minute); exit.Code != 3 || err != nil {
		t.Errorf("got %+v, error %v; want exit status 3", exit, err)
	}
	if !running(pid) {
		t.Error("the command of another guardian is dead; want it alive")
	}
}
