package supervisor

import (
	"bufio"
	"flag"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// leftOverScripts leave a process behind in different ways. Each script prints
// the pid of that process.
var leftOverScripts = map[string]string{
	"plain":         `echo $$; exec sleep 600`,
	"background":    `sleep 600 & echo $!`,
	"nohup":         `nohup sleep 600 >/dev/null 2>&1 & echo $!`,
	"setsid":        `setsid sleep 600 & echo $!`,
	"setsid -f":     `setsid -f sh -c 'echo $$; exec sleep 600'`,
	"double fork":   `(setsid sh -c "sh -c 'echo \$\$; exec sleep 600' &" &)`,
	"no environ":    `env -i setsid -f sh -c 'echo $$; exec sleep 600'`,
	"stopped":       `setsid sh -c 'echo $$; kill -STOP $$; sleep 600' &`,
	"ignores signs": `trap '' TERM INT HUP; setsid -f sh -c 'echo $$; exec sleep 600'; sleep 600`,
}

func TestLeftOverProcessesAreKilledWithTheirAttempt(t *testing.T) {
	for name, script := range leftOverScripts {
		g, lock := startGuardian(t)
		waits, release := newRelease(t)
		child, _, r := startScript(t, g, script+"\n"+waits+"exit 3", time.Hour)
		pid := line(t, r)
		release()
		if name == "plain" || name == "ignores signs" {
			child.Kill()
		}
		exit, err := waitChild(t, child)
		if err != nil {
			t.Errorf("%s: got error %v, want none", name, err)
		}
		if running(pid) {
			t.Errorf("%s: the process is alive after %+v; want it dead", name, exit)
		}
		if !lock.Clean() {
			t.Errorf("%s: got records %+v, want none", name, recordsOf(lock.Path()))
		}
		if err := g.close(); err != nil {
			t.Errorf("%s: Close: got error %v, want none", name, err)
		}
	}
}

func TestOnlyProcessesOfEndedAttemptAreKilled(t *testing.T) {
	g, lock := startGuardian(t)
	waits, release := newRelease(t)
	a, _, ra := startScript(t, g, "setsid -f sh -c 'echo $$; exec sleep 600'; "+waits+"exit 4", time.Hour)
	b, key, rb := startScript(t, startGuardianInSlot(t, lock, 1), "setsid -f sh -c 'echo $$; exec sleep 600'; exec sleep 600", time.Hour)
	mine, other := line(t, ra), line(t, rb)
	release()
	exit, err := waitChild(t, a)
	if err != nil || exit.Code != 4 || exit.LeftOver != 1 || running(mine) {
		t.Errorf("got %+v, error %v, left over alive %v; want exit status 4, 1 left over, dead", exit, err, running(mine))
	}
	if !running(other) {
		t.Error("a process of another attempt is dead; want it alive")
	}
	if records := recordsOf(lock.Path()); len(records) != 1 || records[0].Key != key {
		t.Errorf("got records %+v, want that of %+v", records, key)
	}
	b.Terminate()
	if exit, err := waitChild(t, b); exit.Signal != 15 || err != nil || running(other) {
		t.Errorf("got %+v, error %v, left over alive %v; want signal 15, dead", exit, err, running(other))
	}
}

var leftOvers = flag.Int("leftovers", 500, "processes that one command leaves behind at once")

// leaveProcesses leaves n processes behind, each in a session of its own and
// without an environment.
func leaveProcesses(n string) {
	count, _ := strconv.Atoi(n)
	for range count {
		attr := &syscall.ProcAttr{Env: []string{}, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true}}
		if _, err := syscall.ForkExec("/bin/sleep", []string{"sleep", "300"}, attr); err != nil {
			panic(err)
		}
	}
	fmt.Println(count)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
}

// TestVeryManyLeftOverProcessesAreKilled runs a command that leaves very many
// processes behind. Meanwhile another guardian must be able to start and end
// commands.
func TestVeryManyLeftOverProcessesAreKilled(t *testing.T) {
	g, lock := startGuardian(t)
	other := startGuardianInSlot(t, lock, 1)
	in, open, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	c := self(t, "leaveProcesses", strconv.Itoa(*leftOvers))
	c.Stdin, c.Stdout, c.Stderr = in, w, os.Stderr
	child, err := g.start(c, Key{7, generation.Add(1)}, time.Now().Add(5*time.Minute))
	in.Close()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	if got := line(t, bufio.NewReader(out)); got != *leftOvers {
		t.Fatalf("got %d processes, want %d", got, *leftOvers)
	}
	open.Close()
	began := time.Now()
	end := make(chan Exit, 1)
	go func() {
		exit, _ := child.Wait()
		end <- exit
	}()
	var longest time.Duration
	for ended := false; !ended; {
		at := time.Now()
		bystander, _, _ := startScript(t, other, "exit 0", time.Hour)
		if exit, err := waitChild(t, bystander); exit.Code != 0 || err != nil {
			t.Errorf("the other command: got %+v, error %v; want exit status 0", exit, err)
		}
		longest = max(longest, time.Since(at))
		select {
		case exit := <-end:
			ended = true
			if exit.LeftOver != *leftOvers {
				t.Errorf("got %d left over, want %d", exit.LeftOver, *leftOvers)
			}
			t.Logf("%d processes were dead after %v; the slowest other command took %v", *leftOvers, time.Since(began), longest)
		default:
		}
	}
}
