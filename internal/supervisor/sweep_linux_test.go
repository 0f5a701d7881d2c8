package supervisor

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// startMarked starts a command with the mark of an attempt. It also returns a child of the command in another session
// and without an environment.
func startMarked(t *testing.T, worker string, k Key) (p *Process, child int) {
	t.Helper()
	in, start, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer start.Close()
	// The command first reads a line. This function writes the line after it has marked the command. So the child inherits the mark.
	c := shell("read start; env -i setsid sleep 600 & echo $!; exec sleep 600")
	c.Stdin = in
	p, r := startPiped(t, c)
	in.Close()
	if err := SetMark(p.Pid(), MarkOf(worker, k)); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(start)
	return p, number(t, r)
}

func TestSweepFindsTheProcessesOfAnAttempt(t *testing.T) {
	mine, child := startMarked(t, worker, Key{7, 3})
	other, _ := startMarked(t, worker, Key{8, 3})
	unrelated, stays := startMarked(t, "not-"+worker, Key{7, 3})
	killLater(t, stays)
	ended := func(p *Process) bool { return !running(p.Pid()) }
	sweep := func(keys []Key) {
		t.Helper()
		if denied, clean := Sweep(worker, keys, nil); !clean || len(denied) > 0 {
			t.Errorf("got denied %v, clean %v; want none, true", denied, clean)
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
	if sweep(nil); !ended(other) || ended(unrelated) {
		t.Errorf("got process of the worker dead: %v, of another worker dead: %v; want true, false", ended(other), ended(unrelated))
	}
	unrelated.Kill()
	for _, p := range []*Process{mine, other, unrelated} {
		wait(t, p)
	}
}

func TestMarksIdentifyAnAttempt(t *testing.T) {
	a := MarkOf("a", Key{12, 5})
	if a != MarkOf("a", Key{12, 5}) || a == MarkOf("b", Key{12, 5}) || a == MarkOf("a", Key{13, 5}) || a == MarkOf("a", Key{12, 6}) {
		t.Error("MarkOf: got different marks for one attempt or equal marks for two, want one mark for each attempt")
	}
	if !a.valid() || !a.OwnedBy("a") || a.OwnedBy("b") || a.Task() != 12 {
		t.Errorf("got %+v, want a valid mark of task 12 and worker a", a)
	}
	if got := readMark(os.Getpid()); got.valid() {
		t.Errorf("got %+v for a process without a mark, want an invalid mark", got)
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
	if got := readMark(1 << 30); got.valid() {
		t.Errorf("a missing process: got mark %+v, want none", got)
	}
	if !slices.Contains(processes(), 1) {
		t.Error("got a list of processes without process 1, want it in the list")
	}
	if text, _ := os.ReadFile("/proc/self/limits"); strings.Count(string(text), string(limits[0].name)) != 1 {
		t.Errorf("got %s, want the name of the first limit once", text)
	}
}
