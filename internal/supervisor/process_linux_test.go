package supervisor

import (
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"example.com/runner/internal/testkit"
)

func TestOnlyThreeDescriptorsAreOpen(t *testing.T) {
	seals := map[string]func(){"close_range": setCloseOnExec, "listed": setListedCloseOnExec}
	for name, seal := range seals {
		leak, err := unix.Dup(1) // like an inherited descriptor, it is not set to close on exec
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(leak)
		seal()
		if flags, err := unix.FcntlInt(uintptr(leak), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("%s: got flags %#x, error %v; want FD_CLOEXEC", name, flags, err)
		}
	}
	leak, err := unix.Dup(1)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(leak)
	p, _ := startPiped(t, Command{Path: "/bin/sleep", Argv: []string{"sleep", "60"}})
	testkit.Eventually(t, "three descriptors", func() bool { // the dynamic loader opens libraries for a moment
		files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.Pid()))
		return err == nil && len(files) == 3 && files[0].Name() == "0" && files[1].Name() == "1" && files[2].Name() == "2"
	})
	p.Kill()
	wait(t, p)
}

func TestLeftOverOfAnotherGroupIsKilled(t *testing.T) {
	p, r := startPiped(t, self(t, "regroup"))
	child := number(t, r)
	if exit := wait(t, p); exit.Code != 0 || exit.LeftOver != 1 {
		t.Errorf("got %+v, want exit status 0 and 1 left over", exit)
	}
	testkit.Eventually(t, "the end of the left-over process", gone(child))
}

func TestKillReachesOtherGroupsOfTheSession(t *testing.T) {
	p, r := startPiped(t, self(t, "regroup", "and stay"))
	child := number(t, r)
	if err := p.Kill(); err != nil {
		t.Errorf("Kill: got error %v, want none", err)
	}
	testkit.Eventually(t, "the end of the child before Wait", gone(child))
	if exit := wait(t, p); exit.Signal != 9 || exit.LeftOver != 0 {
		t.Errorf("got %+v, want signal 9 and none left over", exit)
	}
}

func TestLeftOverProcessesThatForkAreKilled(t *testing.T) {
	p, r := startPiped(t, shell("for i in 1 2 3 4; do (while :; do sleep 0.01; done) & done; echo 1; exit 0"))
	number(t, r)
	if exit := wait(t, p); exit.LeftOver < 4 {
		t.Errorf("got %+v, want at least 4 left over", exit)
	}
	for _, pid := range sessionMembers(p.Pid()) {
		if running(pid) {
			t.Errorf("process %d is alive, want it dead", pid)
		}
	}
}

// The benchmarks compare two ways to find the session of a process. sessionMembers uses getsid.
func BenchmarkGetsid(b *testing.B) {
	for b.Loop() {
		unix.Getsid(os.Getpid())
	}
}

func BenchmarkStat(b *testing.B) {
	for b.Loop() {
		running(os.Getpid())
	}
}

func BenchmarkMembers(b *testing.B) {
	for b.Loop() {
		sessionMembers(os.Getpid())
	}
}
