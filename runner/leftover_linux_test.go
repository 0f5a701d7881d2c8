package runner_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"example.com/runner/internal/orphans"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// leftOverVariable is an environment variable that makes the test program start
// a process, leave it behind, and print its pid. The value selects how the
// process escapes.
const leftOverVariable = "RUNNER_TEST_LEFT_OVER"

func init() {
	var err error
	switch os.Getenv(leftOverVariable) {
	case "":
		return
	case "clone": // the new process becomes a sibling: its parent is the parent of this process
		var pid int
		pid, err = syscall.ForkExec("/bin/sleep", []string{"sleep", "300"},
			&syscall.ProcAttr{Env: []string{}, Sys: &syscall.SysProcAttr{Setsid: true, Cloneflags: unix.CLONE_PARENT}})
		fmt.Println(pid)
	case "undumpable": // other processes of the same user cannot read /proc of this process, as with ssh-agent
		err = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
		fmt.Println(os.Getpid())
		os.Stdout.Close()
		if err == nil {
			time.Sleep(5 * time.Minute)
		}
	case "setuid":
		err = syscall.Setresuid(otherUID, otherUID, otherUID)
		fmt.Println(os.Getpid())
		os.Stdout.Close()
		if err == nil {
			time.Sleep(5 * time.Minute)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

const workerUID, otherUID = 54321, 54322

// leaving is a script that leaves four processes behind, and then fails. Each
// of them tries to escape in its own way. For each argument, the script leaves
// one more process behind, with the argument as the value of the environment
// variable leftOverVariable. The script adds the pids of all these processes to
// the file $0.pids. If processes of an earlier attempt are still alive, it adds
// their pids to the file $0.beside.
const leaving = `
for p in $(cat "$0.pids" 2>/dev/null); do
	case $(cut -d" " -f3 /proc/$p/stat 2>/dev/null) in
	"" | Z | X) ;;
	*) echo $p >>"$0.beside" ;;
	esac
done
n=$(cat "$0.pids" 2>/dev/null | wc -l)
note='echo $$ >>"$0.pids"; exec sleep 300'
env -i PATH="$PATH" setsid -f sh -c "$note" "$0"
(setsid sh -c 'env -i PATH="$PATH" sh -c "$1" "$0" &' "$0" "$note" &)
nohup sh -c "$note" "$0" >/dev/null 2>&1 &
for how in clone "$@"; do
	n=$((n + 1))
	RUNNER_TEST_LEFT_OVER=$how setsid -f "$0" >>"$0.pids"
done
until test $(wc -l <"$0.pids") -ge $((n + 3)); do sleep 0.02; done
exit 1`

// programCopy copies the test program to a directory in which every user may
// execute it.
func programCopy(t *testing.T, dir string) string {
	t.Helper()
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	path := filepath.Join(dir, "program")
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = io.Copy(to, from); err != nil {
		t.Fatal(err)
	}
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// readableDirs makes directories that every user may enter, for the database of
// another user. It returns the test directory and the directory of the
// database.
func readableDirs(t *testing.T) (dir, home string) {
	t.Helper()
	dir = t.TempDir()
	for d := dir; d != os.TempDir(); d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	home = filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir, home
}

// startWorkerOf starts a worker as another user, and makes that user the owner
// of all files in dir.
func startWorkerOf(t *testing.T, r *runner.Runner, dir string, uid int, caps ...uintptr) {
	t.Helper()
	if err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error { return os.Lchown(path, uid, uid) }); err != nil {
		t.Fatal(err)
	}
	worker := exec.Command("/proc/self/exe")
	worker.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %v", workerVariable, admin.Path(r), 2, longLease), "GORACE=atexit_sleep_ms=0")
	worker.Stderr, worker.Dir = os.Stderr, "/"
	worker.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}, AmbientCaps: caps}
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = worker.Process.Kill()
		_ = worker.Wait()
	})
}

// TestProcessesOfAttemptAreDeadBeforeItsRetry checks that all processes of an
// attempt are dead before the next attempt starts, even if they tried to
// escape. A task in another slot runs meanwhile.
func TestProcessesOfAttemptAreDeadBeforeItsRetry(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may become others")
	}
	for name, test := range map[string]struct {
		uid  int
		ways []string
	}{"root": {0, []string{"undumpable", "setuid"}}, "other user": {workerUID, []string{"undumpable"}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, home := readableDirs(t)
			program := programCopy(t, dir)
			r, err := runner.Open(t.Context(), filepath.Join(home, "runner.db"), runner.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			script := append([]string{"sh", "-c", leaving, program}, test.ways...)
			task := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: script}, jobs.MaxAttempts(3),
				jobs.WithBackoff(jobs.Backoff{})))
			neighbour := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"sleep", "300"}}, jobs.Priority(1),
				func(s *jobs.Spec) { s.KillAfter = 0 }))
			startWorkerOf(t, r, dir, test.uid)
			until(t, r, func() bool { return runnerkit.Get(t, r, task.ID).State == jobs.Failed })
			testkit.Equal(t, "the neighbour: state", runnerkit.Get(t, r, neighbour.ID).State, jobs.Running)
			pids, _ := os.ReadFile(program + ".pids")
			if got, want := len(strings.Fields(string(pids))), 3*(4+len(test.ways)); got != want {
				t.Errorf("got %d processes, want %d", got, want)
			}
			if beside, err := os.ReadFile(program + ".beside"); err == nil {
				t.Errorf("got processes %q of %q alive in the next attempt, want none", beside, pids)
			}
		})
	}
}

// TestProcessThatCannotBeKilledIsReported checks a process that a worker has no
// right to kill. The worker logs the process, and does not wait for its end.
func TestProcessThatCannotBeKilledIsReported(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root may become others")
	}
	t.Parallel()
	dir, home := readableDirs(t)
	program := programCopy(t, dir)
	r, err := runner.Open(t.Context(), filepath.Join(home, "runner.db"), runner.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	script := `RUNNER_TEST_LEFT_OVER=setuid setsid -f "$0" >"$0.pids"; until test -s "$0.pids"; do sleep 0.02; done`
	task := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"sh", "-c", script, program}}, jobs.MaxAttempts(1)))
	const capSetuid = 7
	startWorkerOf(t, r, dir, workerUID, capSetuid)
	until(t, r, func() bool { return runnerkit.Get(t, r, task.ID).State == jobs.Completed })
	left := pidsIn(program + ".pids")
	defer func() { _ = syscall.Kill(left[0], syscall.SIGKILL) }()
	want := orphans.Process{PID: left[0], Name: "program", State: "S", UID: otherUID, TaskID: task.ID, Unawaited: true}
	found, err := orphans.Of(t.Context(), r, runnerkit.Get(t, r, task.ID))
	testkit.NoError(t, err)
	testkit.Len(t, "orphan processes", found, 1)
	testkit.Equal(t, "orphan process", found[0], want)
	found, err = orphans.Find(t.Context(), r)
	testkit.NoError(t, err)
	if !slices.Contains(found, want) {
		t.Errorf("got orphan processes %+v, want %+v among them", found, want)
	}
}

// TestLeftOverProcessesDoNotDelayOtherTasks checks that a task that leaves
// processes behind again and again does not delay the end of other tasks.
func TestLeftOverProcessesDoNotDelayOtherTasks(t *testing.T) {
	t.Parallel()
	r := runnerkit.Open(t, runner.Options{Sync: runner.SyncNormal})
	handlers(r)
	noisy := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"sh", "-c",
		`while :; do (env -i setsid sleep 1 &); sleep 0.1; done`}}, func(s *jobs.Spec) { s.KillAfter = 0 }))
	runnerkit.Work(t, r, runner.WorkOptions{Concurrency: 2})
	until(t, r, func() bool { return runnerkit.Get(t, r, noisy.ID).State == jobs.Running })
	for range 10 {
		task := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"true"}}))
		until(t, r, func() bool { return runnerkit.Get(t, r, task.ID).State.Finished() })
		testkit.Equal(t, "state", runnerkit.Get(t, r, task.ID).State, jobs.Completed)
	}
	if _, err := r.Cancel(t.Context(), []int64{noisy.ID}, runner.CancelOptions{Kill: true}); err != nil {
		t.Error(err)
	}
}
