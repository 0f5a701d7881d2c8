package supervisor

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// marked starts a command with the mark of an attempt, and returns a child of it that has another session and no environment.
func startMarked(t *testing.T, worker string, k Key) (p *Process, child int) {
	t.Helper()
	go1, go2, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer go2.Close()
	c := shell("read go; env -i setsid sleep 60 & echo $!; exec sleep 60")
	c.Stdin = go1
	p, r := startPiped(t, c)
	go1.Close()
	if err := SetMark(p.Pid(), MarkOf(worker, k)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(go2)
	return p, number(t, r)
}

func TestSweepFindsTheProcessesOfAnAttempt(t *testing.T) {
	mine, child := startMarked(t, worker, Key{7, 3})
	other, _ := startMarked(t, worker, Key{8, 3})
	otherUsers, _ := startMarked(t, "not-"+worker, Key{7, 3})
	ended := func(p *Process) bool { return !running(p.Pid()) }
	sweep := func(keys []Key) {
		t.Helper()
		if denied, clean := Sweep(worker, keys, nil); !clean || len(denied) > 0 {
			t.Errorf("got %v, %v, want all to be dead", denied, clean)
		}
	}
	if sweep([]Key{{7, 2}}); ended(mine) {
		t.Error("an older generation was swept")
	}
	if sweep([]Key{{7, 3}}); !ended(mine) || running(child) {
		t.Error("something was left")
	}
	if ended(other) || ended(otherUsers) {
		t.Error("a otherUsers was killed")
	}
	if sweep(nil); !ended(other) || ended(otherUsers) {
		t.Error("not all of the worker")
	}
	otherUsers.Kill()
	for _, p := range []*Process{mine, other, otherUsers} {
		wait(t, p)
	}
}

func TestMarks(t *testing.T) {
	a := MarkOf("a", Key{12, 5})
	if a != MarkOf("a", Key{12, 5}) || a == MarkOf("b", Key{12, 5}) || a == MarkOf("a", Key{13, 5}) || a == MarkOf("a", Key{12, 6}) {
		t.Error("marks of different attempts are equal, or those of one are not")
	}
	if !a.valid() || !a.OwnedBy("a") || a.OwnedBy("b") || a.Task() != 12 {
		t.Errorf("got %+v", a)
	}
	if got := readMark(os.Getpid()); got.valid() {
		t.Errorf("got %+v for a process without a mark", got)
	}
	p, child := startMarked(t, worker, Key{1 << 30, 9})
	for _, pid := range []int{p.Pid(), child} {
		for _, got := range []Mark{readMark(pid), markFromProc(pid)} {
			if want := MarkOf(worker, Key{1 << 30, 9}); got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		}
		unix.Kill(pid, unix.SIGKILL)
	}
	wait(t, p)
	if readMark(1<<30).valid() || !slices.Contains(processes(), 1) {
		t.Error("/proc is read wrongly")
	}
	if text, _ := os.ReadFile("/proc/self/limits"); strings.Count(string(text), string(limits[0].name)) != 1 {
		t.Errorf("got %s", text)
	}
}
