package supervisor

import (
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/runner/test/testkit"
)

func TestOnlyThreeDescriptorsAreOpen(t *testing.T) {
	seals := map[string]func(){"close_range": setCloseOnExec, "listed": setListedCloseOnExec}
	for name, seal := range seals {
		leak, err := unix.Dup(1) // like an inherited descriptor, the copy is not set to close on exec
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
	p, _ := startPiped(t, Command{Path: "/bin/sleep", Argv: []string{"sleep", "600"}})
	testkit.Eventually(t, "three descriptors", func() bool { // check repeatedly: the dynamic loader of sleep opens libraries for a moment
		files, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.Pid()))
		return err == nil && len(files) == 3 && files[0].Name() == "0" && files[1].Name() == "1" && files[2].Name() == "2"
	})
	p.Kill()
	wait(t, p)
}

func TestLeftOverOfAnotherGroupIsKilled(t *testing.T) {
	g, _ := startGuardian(t)
	child, _, r := startCommand(t, g, self(t, "regroup"), time.Hour)
	pid := line(t, r)
	if exit, err := waitChild(t, child); err != nil || exit.Code != 0 || exit.LeftOver != 1 {
		t.Errorf("got %+v, error %v; want exit status 0 and 1 left over", exit, err)
	}
	if running(pid) {
		t.Error("the left-over process is alive, want it dead")
	}
}

func TestKillReachesOtherGroupsOfSession(t *testing.T) {
	g, _ := startGuardian(t)
	child, _, r := startCommand(t, g, self(t, "regroup", "and stay"), time.Hour)
	pid := line(t, r)
	if err := child.Kill(); err != nil {
		t.Errorf("Kill: got error %v, want none", err)
	}
	testkit.Eventually(t, "the end of the child before Wait", func() bool { return !running(pid) })
	if exit, err := waitChild(t, child); err != nil || exit.Signal != 9 || exit.LeftOver != 0 {
		t.Errorf("got %+v, error %v; want signal 9 and none left over", exit, err)
	}
}

func TestLeftOverProcessesThatForkAreKilled(t *testing.T) {
	g, _ := startGuardian(t)
	child, key, r := startScript(t, g, "for i in 1 2 3 4; do (while :; do sleep 0.01; done) & done; echo 1; exit 0", time.Hour)
	line(t, r)
	if exit, err := waitChild(t, child); err != nil || exit.LeftOver < 4 {
		t.Errorf("got %+v, error %v; want at least 4 left over", exit, err)
	}
	for _, p := range FindMarked() {
		if p.Mark == (Mark{worker, key}) {
			t.Errorf("got living process %+v, want none", p)
		}
	}
}
