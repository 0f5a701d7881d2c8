package supervisor

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/runner/test/testkit"
)

// leaving returns a command that may leave processes behind.
func leaving(script string) Command {
	c := shell(script)
	c.LeaveChildren = true
	return c
}

// killLater kills a process that the test leaves behind.
func killLater(t *testing.T, pid int) {
	t.Cleanup(func() { _ = unix.Kill(pid, unix.SIGKILL) })
}

// waitDone waits for the end of a guardian.
func waitDone(t *testing.T, g *Guardian) {
	t.Helper()
	select {
	case <-g.done:
	case <-time.After(limit):
		t.Fatalf("got a guardian that runs after %v, want it ended", limit)
	}
}

func TestCommandMayLeaveProcessesBehind(t *testing.T) {
	for name, script := range leftOverScripts {
		// Skip two scripts whose leader does not end by itself ("plain",
		// "ignores signs"), and one that leaves a stopped process behind.
		if name == "plain" || name == "stopped" || name == "ignores signs" {
			continue
		}
		for _, status := range []string{"exit 0", "exit 3"} {
			g, lock := startGuardian(t)
			waits, release := newRelease(t)
			child, _, r := startCommand(t, g, leaving(script+"\n"+waits+status), time.Hour)
			pid := line(t, r)
			killLater(t, pid)
			release()
			exit, err := waitChild(t, child)
			if err != nil || exit.Left == 0 || exit.LeftOver != 0 || len(exit.Denied) > 0 {
				t.Errorf("%s: got %+v, error %v; want processes left and none killed", name, exit, err)
			}
			if isIdle(g) {
				t.Errorf("%s: got an idle guardian; want one that takes no other command", name)
			}
			waitDone(t, g)
			if err := g.close(); err != nil || !lock.Clean() {
				t.Errorf("%s: got error %v, records %+v; want none", name, err, recordsOf(lock.Path()))
			}
			// Another guardian uses the same slot of the lock file, starts
			// another command and is killed with it. The sweep must not kill
			// the process that the first command left behind.
			next := startGuardianInSlot(t, lock, 0)
			other, _, _ := startCommand(t, next, shell("sleep 600"), time.Hour)
			_ = unix.Kill(next.process.Pid, unix.SIGKILL)
			_, _ = waitChild(t, other)
			if !Sweep(worker, nil, lock.Path()) || !running(pid) {
				t.Errorf("%s: got process alive %v after a sweep, want true", name, running(pid))
			}
		}
	}
}

func TestOnlyCommandThatExitsLeavesProcessesBehind(t *testing.T) {
	const script = "setsid -f sh -c 'echo $$; exec sleep 600'\n"
	cases := map[string]struct {
		script string // what the leader does after it has left a process behind
		end    func(*Child)
	}{
		"kill":               {"sleep 600", func(c *Child) { _ = c.Kill() }},
		"terminate":          {"sleep 600", func(c *Child) { _ = c.Terminate() }},
		"exit after TERM":    {"sleep 600 & wait", func(c *Child) { _ = c.Terminate() }},
		"deadline":           {"sleep 600", func(c *Child) { c.g.renew([]Key{c.key}, time.Now()) }},
		"signal":             {"kill -9 $$", func(*Child) {}},
		"end of the worker":  {"sleep 600", func(c *Child) { _ = c.g.close() }},
		"a killed guardian":  {"sleep 600", func(c *Child) { _ = unix.Kill(c.g.process.Pid, unix.SIGKILL) }},
		"a killed command":   {"sleep 600", func(c *Child) { _ = unix.Kill(leader(t, c), unix.SIGKILL) }},
		"a terminated shell": {"sleep 600", func(c *Child) { _ = unix.Kill(leader(t, c), unix.SIGTERM) }},
	}
	trap := map[string]string{"exit after TERM": "trap 'exit 0' TERM\n"}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			g, _ := startGuardian(t)
			waits, release := newRelease(t)
			child, _, r := startCommand(t, g, leaving(trap[name]+script+waits+test.script), time.Hour)
			pid := line(t, r)
			killLater(t, pid)
			release()
			test.end(child)
			exit, _ := waitChild(t, child)
			if running(pid) || exit.Left != 0 {
				t.Errorf("got process alive %v after %+v; want it dead", running(pid), exit)
			}
		})
	}
}

// TestKillOfCommandItselfIsNoneOfGuardian lets a command that may leave
// processes behind kill one of its own.
func TestKillOfCommandItselfIsNoneOfGuardian(t *testing.T) {
	g, _ := startGuardian(t)
	child, _, r := startCommand(t, g, leaving("setsid -f sh -c 'echo $$; exec sleep 600'; sleep 600 & kill -9 $!; exit 0"), time.Hour)
	killLater(t, line(t, r))
	if exit, err := waitChild(t, child); err != nil || exit.Left == 0 || exit.LeftOver != 0 {
		t.Errorf("got %+v, error %v; want processes left and none killed", exit, err)
	}
}

func TestGuardianWhoseCommandLeavesNothingStartsNextOne(t *testing.T) {
	g, _ := startGuardian(t)
	for range 3 {
		child, _, _ := startCommand(t, g, leaving("sleep 0.01 & wait; exit 4"), time.Hour)
		if exit, err := waitChild(t, child); exit.Code != 4 || exit.Left != 0 || err != nil || !isIdle(g) {
			t.Errorf("got %+v, error %v, idle %v; want exit status 4, none left, idle", exit, err, isIdle(g))
		}
	}
}

func TestProcessWithoutGuardianMayBeLeftBehind(t *testing.T) {
	p, r := startPiped(t, leaving("sleep 600 & echo $!; exit 3"))
	pid := number(t, r)
	killLater(t, pid)
	if exit := wait(t, p); exit.Code != 3 || !running(pid) {
		t.Errorf("got %+v, alive %v; want exit status 3, alive", exit, running(pid))
	}
	p, r = startPiped(t, leaving("sleep 600 & echo $!; sleep 600"))
	pid = number(t, r)
	killLater(t, pid)
	_ = p.Kill()
	wait(t, p)
	testkit.Eventually(t, "the process is dead", func() bool { return !running(pid) }) // the process dies some time after wait has returned
}
