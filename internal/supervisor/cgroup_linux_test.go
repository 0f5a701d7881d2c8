package supervisor

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// TestCommandLivesAfterAnotherProcessHasKilledCgroup kills the cgroup of a
// guardian, as a worker that takes over or an administrator may do. The next
// command must live, although the kernel kills every process that starts in a
// killed cgroup.
func TestCommandLivesAfterAnotherProcessHasKilledCgroup(t *testing.T) {
	g, lock := startGuardian(t)
	killed, _, _ := startScript(t, g, "exec sleep 300", time.Hour)
	leader(t, killed)
	if err := os.WriteFile(filepath.Join(recordsOf(lock.Path())[0].cgroup, "cgroup.kill"), []byte("1"), 0); err != nil {
		t.Skip("this user may not create a cgroup:", err)
	}
	if exit, err := waitChild(t, killed); exit.Signal != 9 || err != nil {
		t.Fatalf("got %+v, error %v; want signal 9", exit, err)
	}
	next, _, _ := startScript(t, g, "exit 0", time.Hour)
	if exit, err := waitChild(t, next); exit.Signal != 0 || exit.Code != 0 || err != nil {
		t.Errorf("the next command: got %+v, error %v; want exit status 0", exit, err)
	}
}

// TestSweepOfOneAttemptKeepsNextInCgroup has processes of two attempts in the
// cgroup of one guardian. This happens if a guardian hangs, and continues with
// its next attempt while another worker kills the processes of the earlier
// attempt. The function Sweep must kill only these processes. The next attempt
// must survive.
func TestSweepOfOneAttemptKeepsNextInCgroup(t *testing.T) {
	g, lock := startGuardian(t)
	next, _, _ := startScript(t, g, "exec sleep 300", time.Hour)
	pid := leader(t, next)
	if !hasCgroup(lock) {
		t.Skip("this user may not create a cgroup")
	}
	group := recordsOf(lock.Path())[0].cgroup
	before, child := startMarked(t, worker, Key{9, 3})
	for _, pid := range []int{before.Pid(), child} {
		if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
			t.Fatal(err)
		}
	}
	if clean := Sweep(worker, []Key{{9, 3}}, lock.Path()); !clean || running(child) {
		t.Errorf("got clean %v, child alive %v; want true, false", clean, running(child))
	}
	wait(t, before)
	if !running(pid) {
		t.Error("the next attempt is dead; want it alive")
	}
	next.Kill()
	if exit, err := waitChild(t, next); exit.Signal != 9 || err != nil {
		t.Errorf("got %+v, error %v; want signal 9", exit, err)
	}
}

// TestGuardianDoesWithoutCgroupsOnOldKernel uses a directory without the file
// cgroup.kill, like a cgroup before Linux 5.14.
func TestGuardianDoesWithoutCgroupsOnOldKernel(t *testing.T) {
	lock, err := NewLock(filepath.Join(t.TempDir(), worker+LockSuffix))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := lock.setCgroups(t.TempDir()); err != nil {
		t.Fatal(err)
	}
	g := newGuardian(worker, 0, lock, -1)
	g.makeCgroup()
	if g.cgroupDir != "" {
		t.Errorf("got the cgroup %s; want none", g.cgroupDir)
	}
}
