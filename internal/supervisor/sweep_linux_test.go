package supervisor

import (
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// startMarked starts a command with the mark of an attempt. It also returns a
// child of the command in another session.
func startMarked(t *testing.T, worker string, k Key) (p *Process, child int) {
	t.Helper()
	c := shell("setsid sleep 600 & echo $!; exec sleep 600")
	c.Env = append(c.Env, Mark{worker, k}.Environ()...)
	p, r := startPiped(t, c)
	return p, number(t, r)
}

func TestSweepFindsProcessesOfAttempt(t *testing.T) {
	lock := newTestLock(t)
	mine, child := startMarked(t, worker, Key{7, 3})
	other, _ := startMarked(t, worker, Key{8, 3})
	finished, left := startMarked(t, worker, Key{8, 2})
	unrelated, stays := startMarked(t, "not-"+worker, Key{7, 3})
	killLater(t, left)
	killLater(t, stays)
	if err := lock.setRecord(2, Key{8, 3}); err != nil {
		t.Fatal(err)
	}
	ended := func(p *Process) bool { return !running(p.Pid()) }
	sweep := func(keys []Key) {
		t.Helper()
		if !Sweep(worker, keys, lock.Path()) {
			t.Error("got clean false, want true")
		}
	}
	if sweep([]Key{{7, 2}}); ended(mine) {
		t.Error("the process of a newer generation is dead; want it alive")
	}
	if sweep([]Key{{7, 3}}); !ended(mine) || running(child) {
		t.Error("a process of the attempt is alive; want all dead")
	}
	if ended(other) || ended(unrelated) {
		t.Error("a process of another attempt or worker is dead; want it alive")
	}
	if sweep(nil); !ended(other) || ended(finished) || ended(unrelated) {
		t.Errorf("got dead %v (attempt in the lock file), %v (other attempt), %v (other worker); want true, false, false",
			ended(other), ended(finished), ended(unrelated))
	}
	for _, p := range []*Process{mine, other, finished, unrelated} {
		p.Kill()
		wait(t, p)
	}
}

// TestSweepFindsHiddenProcessesInCgroup sweeps the attempt of a guardian
// that hangs, once as an attempt of a worker that hangs and once as one of a
// dead worker.
func TestSweepFindsHiddenProcessesInCgroup(t *testing.T) {
	for name, one := range map[string]bool{"a worker that hangs": true, "a dead worker": false} {
		g, lock := startGuardian(t)
		child, key, r := startScript(t, g, leftOverScripts["no environ"]+"\nsleep 600", time.Hour)
		pid := line(t, r)
		if !hasCgroup(lock) {
			t.Skip("this user may not create a cgroup")
		}
		if m, ok := readMark(pid); ok {
			t.Errorf("%s: got mark %+v of a process without an environment, want none", name, m)
		}
		first := leader(t, child)
		if err := unix.Kill(g.process.Pid, unix.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		var keys []Key
		if one {
			keys = []Key{key}
		}
		if clean := Sweep(worker, keys, lock.Path()); !clean || running(pid) || running(first) {
			t.Errorf("%s: got clean %v, alive %v and %v; want true, false, false", name, clean, running(pid), running(first))
		}
		if err := unix.Kill(g.process.Pid, unix.SIGCONT); err != nil {
			t.Fatal(err)
		}
		if exit, err := waitChild(t, child); exit.Signal != 9 || err != nil {
			t.Errorf("%s: got %+v, error %v; want signal 9", name, exit, err)
		}
	}
}

// TestSweepFindsProcessesInCgroupsOfTheirOwn lets a command move a process
// without an environment into a cgroup below that of its guardian, and end.
func TestSweepFindsProcessesInCgroupsOfTheirOwn(t *testing.T) {
	g, lock := startGuardian(t)
	child, key, r := startScript(t, g, `
		dir=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)$(sed -n 's/^0:://p' /proc/self/cgroup)/own
		mkdir "$dir" && env -i DIR="$dir" setsid sh -c 'echo $$ >"$DIR/cgroup.procs"; exec env -i sh -c "echo \$\$; exec sleep 600"' &
		exec sleep 600`, time.Hour)
	first := leader(t, child)
	if !hasCgroup(lock) {
		t.Skip("this user may not create a cgroup")
	}
	pid := line(t, r)
	killLater(t, pid)
	if err := unix.Kill(g.process.Pid, unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	if err := unix.Kill(first, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if clean := Sweep(worker, []Key{key}, lock.Path()); !clean || running(pid) {
		t.Errorf("got clean %v, alive %v; want true, false", clean, running(pid))
	}
	if err := unix.Kill(g.process.Pid, unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if exit, err := waitChild(t, child); exit.Signal != 9 || err != nil {
		t.Errorf("got %+v, error %v; want signal 9", exit, err)
	}
}

func TestMarksIdentifyAttempt(t *testing.T) {
	p, child := startMarked(t, worker, Key{1 << 40, 9})
	for _, pid := range []int{p.Pid(), child} {
		if got, ok := readMark(pid); !ok || got != (Mark{worker, Key{1 << 40, 9}}) {
			t.Errorf("got %+v, %v; want worker %s, task 1<<40, generation 9", got, ok, worker)
		}
		unix.Kill(pid, unix.SIGKILL)
	}
	wait(t, p)
	if got, ok := readMark(1 << 30); ok {
		t.Errorf("a missing process: got mark %+v, want none", got)
	}
	if !slices.Contains(processes(), 1) {
		t.Error("got a list of processes without process 1, want it in the list")
	}
}

// TestProgramThatExecsAllTimeShowsItsMark reads marks during execve, when
// the kernel shows an empty environment.
func TestProgramThatExecsAllTimeShowsItsMark(t *testing.T) {
	c := shell(`exec sh -c "$AGAIN"`)
	c.Env = append(c.Env, `AGAIN=exec sh -c "$AGAIN"`, "PADDING="+strings.Repeat("x", 20_000)) // the mark is far from the beginning
	c.Env = append(c.Env, Mark{worker, Key{7, 3}}.Environ()...)
	p, _ := startPiped(t, c)

	missed := 0
	for range 5000 {
		if _, ok := readMark(p.Pid()); !ok {
			missed++
		}
	}
	if missed > 0 {
		t.Errorf("got no mark in %d of 5,000 reads; want one in each", missed)
	}

	p.Kill()
	wait(t, p)
	if _, ok := readMark(p.Pid()); ok {
		t.Error("got the mark of a process that has ended, want none")
	}
}
