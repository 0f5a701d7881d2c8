//go:build soak && linux

package test

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/runner/test/testkit"
)

var soakFor = flag.Duration("soak", 5*time.Minute, "duration of TestSoak")

// TestSoak runs three workers for some minutes, and replaces one of them every
// 20 s. The workers run the tasks of 50 schedules, some in lanes and some in
// queues with limits. They also run chains of tasks and a steady number of
// batches. They delete tasks that are older than 10 s.
//
// At the end, each tick must have had exactly one task. No two tasks of a lane,
// and no three tasks of a queue with the limit two, may have run at once. The
// database must not have grown in the last quarter of the test.
//
// Run it with: make soak FOR=30m
func TestSoak(t *testing.T) {
	s := &soak{T: t, dir: t.TempDir()}
	build := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(s.dir, "runner"), ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: got error %v, want none\n%s", err, out)
	}
	s.addSchedules(50)
	s.runner("limit", "set", "queue:two", "--running", "2")
	s.runner("limit", "set", "queue:paced", "--rate", "20/1s")
	s.runner("limit", "set", "lane:l0", "--rate", "10/1s")
	workers := []*exec.Cmd{s.work(), s.work(), s.work()}

	sizes := []int64{}
	end := time.Now().Add(*soakFor)
	for n := 0; time.Now().Before(end); n++ {
		if n%20 == 19 {
			i := n / 20 % len(workers)
			s.stop(workers[i])
			workers[i] = s.work()
		}
		s.enqueue()
		sizes = append(sizes, s.size())
		if n%30 == 0 {
			t.Logf("%v left: %.1f MB; %s; descriptors and memory of a worker: %d, %d MB", time.Until(end).Round(time.Second),
				float64(sizes[n])/1e6,
				strings.Join(strings.Fields(s.runner("status", "--format",
					"{{range .queues}}{{.queue}}:{{.pending}}+{{.blocked}} {{end}}")), " "),
				descriptors(workers[0]), memory(workers[0]))
		}
		time.Sleep(time.Second)
	}
	paused := time.Now()
	s.runner(append([]string{"schedule", "pause"}, s.names...)...)
	s.runner("wait", "--all", "--timeout", "2m")
	for _, w := range workers {
		s.stop(w)
	}

	s.checkTicks(paused)
	for _, name := range []string{"overlaps", "exceeded"} {
		if text, _ := os.ReadFile(filepath.Join(s.dir, name)); len(text) > 0 {
			t.Errorf("got %s, want none:\n%s", name, text)
		}
	}
	s.checkSizes(sizes)
	t.Log(s.runner("doctor", "--full"))
}

// soak is the state of TestSoak.
type soak struct {
	*testing.T
	dir   string
	names []string
	every map[string]time.Duration // interval between two ticks, by schedule
}

// runner runs a command of runner and returns its output.
func (s *soak) runner(args ...string) string {
	s.Helper()
	cmd := s.command(args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		s.Fatalf("runner %s: got error %v, want none\n%s%s", strings.Join(args, " "), err, out, &stderr)
	}
	return string(out)
}

func (s *soak) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(s.dir, "runner"), args...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "RUNNER_DB="+filepath.Join(s.dir, "runner.db"), "HOME="+s.dir)
	return cmd
}

// work starts a worker.
func (s *soak) work() *exec.Cmd {
	cmd := s.command("work", "-c", "8", "--keep", "10s", "--keep-failed", "10s", "--log-level", "warn")
	testkit.StartWithLog(s, cmd, filepath.Join(s.dir, "work.log"))
	return cmd
}

// stop sends a signal to a worker and waits until the worker has finished its
// tasks and exited.
func (s *soak) stop(worker *exec.Cmd) {
	if err := worker.Process.Signal(syscall.SIGTERM); err != nil {
		s.Fatal(err)
	}
	if err := worker.Wait(); err != nil {
		s.Errorf("got error %v from a worker, want none", err)
	}
}

// addSchedules adds schedules with intervals of 1 s to 5 s, and some with an
// interval of one minute in different time zones. Each of their tasks writes
// its tick to a file.
func (s *soak) addSchedules(n int) {
	s.every = map[string]time.Duration{}
	const noted = `echo $RUNNER_TASK_SCHEDULE $RUNNER_TASK_DUE $RUNNER_TASK_ID >>ticks`
	const exclusive = `mkdir lane-%[1]s || echo lane %[1]s >>overlaps; sleep 0.01; rmdir lane-%[1]s; ` + noted
	const limited = `mkdir -p slots; mkdir slots/$RUNNER_TASK_ID; set -- slots/*; test $# -le 2 ||
		echo "$@" >>exceeded; sleep 0.01; rmdir slots/$RUNNER_TASK_ID; ` + noted
	for i := range n {
		name, every := fmt.Sprintf("s%02d", i), time.Duration(1+i%5)*time.Second
		args := []string{"schedule", "add", name, "--overlap", "allow", "--catch-up", "all", "--cron", "@every " + every.String()}
		if i%5 == 4 {
			every = time.Minute
			args[len(args)-1] = "* * * * *"
			args = append(args, "--zone", []string{"UTC", "Europe/Berlin", "Asia/Kathmandu", "Australia/Lord_Howe"}[i/5%4])
		}
		switch {
		case i%4 == 0:
			lane := fmt.Sprintf("l%d", i/4%5)
			args = append(args, "--lane", lane, "-p", strconv.Itoa(i%3), "--shell", fmt.Sprintf(exclusive, lane))
		case i%4 == 1:
			args = append(args, "-q", "two", "--shell", limited)
		case i%4 == 2:
			args = append(args, "-q", "paced", "--shell", noted)
		default:
			args = append(args, "--shell", noted)
		}
		s.runner(args...)
		s.names = append(s.names, name)
		s.every[name] = every
	}
}

// enqueue adds several tasks, and a task that depends on all of them. A chain
// of further tasks depends on that task, and one task of the chain fails.
// enqueue also adds independent tasks.
func (s *soak) enqueue() {
	lines := `{"id":"a","args":["true"]}
{"id":"b","args":["true"],"lane":"chain"}
{"id":"c","args":["true"],"after":["a","b"]}
{"id":"d","args":["false"],"after":["c"]}
{"id":"e","args":["true"],"after":["d"]}
{"id":"f","args":["true"],"after_any":["e"],"lane":"chain"}
{"args":["head","-c","2000","/dev/zero"],"queue":"low","priority":1}
{"args":["head","-c","2000","/dev/zero"],"queue":"two"}
`
	cmd := s.command("enqueue", "--batch", "-")
	cmd.Stdin = strings.NewReader(lines)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.Fatalf("enqueue: got error %v, want none\n%s", err, out)
	}
}

// size returns the size of the database and of its write-ahead log in bytes.
func (s *soak) size() (bytes int64) {
	for _, end := range []string{"", "-wal"} {
		if info, err := os.Stat(filepath.Join(s.dir, "runner.db"+end)); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}

// checkTicks reads the file with the ticks of the tasks, and checks that each
// tick had exactly one task.
func (s *soak) checkTicks(paused time.Time) {
	text, err := os.ReadFile(filepath.Join(s.dir, "ticks"))
	if err != nil {
		s.Fatal(err)
	}
	ticks := map[string][]time.Time{}
	tasks := map[string]string{}
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) != 3 {
			s.Fatalf("got the line %q, want schedule, tick and task", line)
		}
		due, err := time.Parse(time.RFC3339Nano, words[1])
		if err != nil {
			s.Fatal(err)
		}
		ticks[words[0]] = append(ticks[words[0]], due)
		if other, known := tasks[words[0]+words[1]]; known {
			s.Errorf("%s, tick %s: got tasks %s and %s, want one", words[0], words[1], other, words[2])
		}
		tasks[words[0]+words[1]] = words[2]
	}
	for _, name := range s.names {
		list, every := ticks[name], s.every[name]
		slices.SortFunc(list, time.Time.Compare)
		if len(list) == 0 {
			if *soakFor > every {
				s.Errorf("%s: got no tick, want one every %v", name, every)
			}
			continue
		}
		for i := range list[1:] {
			if gap := list[i+1].Sub(list[i]); gap != every {
				s.Errorf("%s: got %v between the ticks %v and %v, want %v", name, gap, list[i], list[i+1], every)
			}
		}
		if late := paused.Sub(list[len(list)-1]); late > every+5*time.Second {
			s.Errorf("%s: got the last tick %v before the end, want at most %v", name, late, every+5*time.Second)
		}
	}
	s.Logf("%d ticks of %d schedules, each once", len(tasks), len(s.names))
}

// checkSizes checks that the database did not grow in the last quarter of the
// test. The largest size in this quarter may exceed the largest size in the
// third quarter by 25 % and 1 MiB at most.
func (s *soak) checkSizes(sizes []int64) {
	n := len(sizes)
	if n < 120 {
		s.Logf("%d s are too short to say whether the size is flat", n)
		return
	}
	before, after := slices.Max(sizes[n/2:n*3/4]), slices.Max(sizes[n*3/4:])
	s.Logf("size: at most %.2f MB in the third quarter, %.2f MB in the last", float64(before)/1e6, float64(after)/1e6)
	if after > before*5/4+1<<20 {
		s.Errorf("got a database of %d bytes after %d, want at most a quarter and 1 MiB more", after, before)
	}
}

func descriptors(worker *exec.Cmd) int {
	list, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", worker.Process.Pid))
	return len(list)
}

// memory returns the resident memory of a process in MiB.
func memory(worker *exec.Cmd) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", worker.Process.Pid))
	pages, _ := strconv.Atoi(cmp.Or(strings.Join(strings.Fields(string(text))[1:2], ""), "0"))
	return pages * os.Getpagesize() >> 20
}
