package runner_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
)

// The tests in this file check what a worker costs on a small machine and
// inside another program: its memory, and how often it wakes up. They also
// check that a closed Runner leaves no goroutine and no file behind.

// edgeVariable is an environment variable that makes the test program a program
// with an embedded worker. Its value is the path of the database. The worker
// runs the job "noop", and ends when its standard input ends.
const edgeVariable = "RUNNER_TEST_EDGE"

func init() {
	path := os.Getenv(edgeVariable)
	if path == "" {
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	r, err := runner.Open(ctx, path, runner.Options{})
	if err == nil {
		r.Register(noop.Handler(func(context.Context, string) error { return nil }))
		if err = r.Work(ctx, runner.WorkOptions{Concurrency: 4}); err == nil {
			err = r.Close()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// startEmbedded starts the program with the embedded worker on the file of r,
// and returns when the worker runs.
func startEmbedded(t testing.TB, r *runner.Runner, environ ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := exec.Command(self)
	p.Env = append(append(os.Environ(), edgeVariable+"="+admin.Path(r)), environ...)
	p.Stderr = os.Stderr
	stdin, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		testkit.NoError(t, p.Wait())
	})
	if err := admin.Changes(t.Context(), r, func() (bool, error) {
		workers, err := admin.Workers(t.Context(), r)
		return len(workers) > 0, err
	}); err != nil {
		t.Fatal(err)
	}
	return p
}

// status reads a field in kB from /proc/PID/status and returns it in MiB.
func status(t testing.TB, pid int, name string) float64 {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), name+":")
	kb, err := strconv.ParseFloat(strings.Fields(after)[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	return kb / 1024
}

// usage returns the number of times that the threads of a process went to sleep
// voluntarily, and their total run time.
func usage(t testing.TB, pid int) (wakeups float64, ran time.Duration) {
	t.Helper()
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	testkit.NoError(t, err)
	if len(threads) == 0 {
		t.Fatalf("got no threads of process %d, want at least one", pid)
	}
	for _, thread := range threads {
		text, err := os.ReadFile(thread + "/status")
		if err != nil {
			continue // this thread ended after it was listed
		}
		_, after, _ := strings.Cut(string(text), "\nvoluntary_ctxt_switches:")
		n, err := strconv.ParseFloat(strings.Fields(after)[0], 64)
		if err != nil {
			t.Fatal(err)
		}
		wakeups += n
		if text, err = os.ReadFile(thread + "/schedstat"); err == nil {
			ns, _ := strconv.ParseInt(strings.Fields(string(text))[0], 10, 64)
			ran += time.Duration(ns)
		}
	}
	return wakeups, ran
}

// BenchmarkIdle measures the cost of an idle embedded worker over 5 s. The
// database has pending tasks that this worker cannot run.
func BenchmarkIdle(b *testing.B) {
	for _, pending := range []int{0, 100_000} {
		b.Run(fmt.Sprint("pending=", pending), func(b *testing.B) {
			const window = 5 * time.Second
			r := bench(b, runner.SyncNormal, 0)
			if _, err := r.EnqueueSeq(b.Context(), repeat(jobs.Define[string]("of.others").With(payload), pending)); err != nil {
				b.Fatal(err)
			}
			p := startEmbedded(b, r)
			time.Sleep(time.Second) // the worker needs some time to start
			for b.Loop() {
				wakeups, ran := usage(b, p.Process.Pid)
				time.Sleep(window)
				more, later := usage(b, p.Process.Pid)
				b.ReportMetric((more-wakeups)/window.Seconds(), "wakeups/s")
				b.ReportMetric(float64((later-ran).Microseconds())/1000/window.Seconds(), "cpu-ms/s")
				b.ReportMetric(status(b, p.Process.Pid, "VmRSS"), "RSS-MiB")
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}

// TestWorkerRunsWith24MiBOfMemory runs a worker with a Go memory limit
// (GOMEMLIMIT) of 24 MiB, as on a small machine.
func TestWorkerRunsWith24MiBOfMemory(t *testing.T) {
	r, err := runner.Open(t.Context(), filepath.Join(t.TempDir(), "test.db"), runner.Options{Sync: runner.SyncNormal})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p := startEmbedded(t, r, "GOMEMLIMIT=24MiB")
	const tasks = 1000
	args := strings.Repeat("x", 20<<10)
	done, err := r.EnqueueSeq(t.Context(), slices.Values(slices.Repeat([]jobs.Spec{noop.With(args)}, tasks)))
	if err != nil {
		t.Fatal(err)
	}
	if err := admin.Changes(t.Context(), r, func() (bool, error) {
		n, _, err := r.Count(t.Context(), jobs.Filter{States: taskspec.Unfinished()})
		return n == 0, err
	}); err != nil {
		t.Fatal(err)
	}
	n, _, err := r.Count(t.Context(), jobs.Filter{States: []jobs.State{jobs.Completed}})
	testkit.NoError(t, err)
	testkit.Equal(t, "completed tasks", n, len(done))
	t.Logf("%d tasks with %d bytes of arguments: peak of memory %.1f MiB", tasks, len(args), status(t, p.Process.Pid, "VmHWM"))
}

// moduleGoroutines returns the stacks of the goroutines of this module and of
// database/sql.
func moduleGoroutines(t *testing.T) []string {
	t.Helper()
	var stacks bytes.Buffer
	if err := pprof.Lookup("goroutine").WriteTo(&stacks, 2); err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(strings.Split(stacks.String(), "\n\n"), func(stack string) bool {
		return !strings.Contains(stack, "example.com/runner/") && !strings.Contains(stack, "database/sql")
	})
}

// idOf returns the words with which a stack trace begins: the id of its
// goroutine, such as "goroutine 17".
func idOf(stack string) string {
	head, _, _ := strings.Cut(stack, " [")
	return head
}

// TestCloseLeavesNoGoroutineAndNoOpenFile checks that a closed Runner leaves no
// goroutine and no open file, and that the only other file beside the database
// is init.lock, in the directory test.db.d.
func TestCloseLeavesNoGoroutineAndNoOpenFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "test.db")
	before := moduleGoroutines(t) // these goroutines may belong to other tests
	for range 3 {                 // the first round creates the file, and the later rounds open it
		r, err := runner.Open(t.Context(), path, runner.Options{Sync: runner.SyncNormal})
		if err != nil {
			t.Fatal(err)
		}
		r.Register(noop.Handler(func(context.Context, string) error { return nil }))
		ctx, stop := context.WithCancel(t.Context())
		worked := make(chan error, 1)
		go func() { worked <- r.Work(ctx, runner.WorkOptions{Concurrency: 1}) }()
		task, err := r.Enqueue(t.Context(), noop.With("x"))
		if err != nil {
			t.Fatal(err)
		}
		task, err = r.Await(t.Context(), task.ID)
		testkit.NoError(t, err)
		testkit.Equal(t, "state", task.State, jobs.Completed)
		stop()
		if err := <-worked; err != nil {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	var left []string
	for end := time.Now().Add(testkit.Patience); ; time.Sleep(5 * time.Millisecond) { // a goroutine may need some time to end
		left = slices.DeleteFunc(moduleGoroutines(t), func(stack string) bool {
			return slices.ContainsFunc(before, func(old string) bool { return idOf(old) == idOf(stack) })
		})
		if len(left) == 0 || time.Now().After(end) {
			break
		}
	}
	testkit.Len(t, "goroutines that are left", left, 0)
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, fd := range fds {
		if target, err := os.Readlink("/proc/self/fd/" + fd.Name()); err == nil &&
			(strings.HasPrefix(target, dir) || strings.Contains(target, "inotify")) {
			t.Errorf("got the open file %s after Close, want none", target)
		}
	}
	var files []string
	err = filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
		files = append(files, strings.TrimPrefix(path, dir))
		return err
	})
	if want := []string{"", "/test.db", "/test.db.d", "/test.db.d/init.lock"}; err != nil || !slices.Equal(files, want) {
		t.Errorf("files %q, want %q, %v", files, want, err)
	}
}
