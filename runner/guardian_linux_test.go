package runner_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/commands"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

func TestKilledWorkerLeavesNoProcessAndItsTaskRunsAgain(t *testing.T) {
	t.Parallel()
	r := runnerkit.Open(t, runner.Options{})
	handlers(r)
	task, worker, members := startProcessTree(t, r, longLease)
	once := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"sleep", "600"}}, jobs.AtMostOnce()))
	until(t, r, func() bool { return runnerkit.Get(t, r, once.ID).State == jobs.Running })
	runnerkit.Work(t, r, runner.WorkOptions{Grace: -1})
	until(t, r, func() bool { return len(lockFiles(t, r)) == 2 })
	began := time.Now()
	signal(t, worker.Pid, syscall.SIGKILL)
	testkit.Eventually(t, "all dead", func() bool { return living(members) == 0 })
	t.Log("all dead after", time.Since(began))
	until(t, r, func() bool { got := runnerkit.Get(t, r, task.ID); return got.State == jobs.Running && got.Losses == 1 })
	t.Log("runs again after", time.Since(began))
	got := runnerkit.Get(t, r, once.ID)
	testkit.Equal(t, "state", got.State, jobs.Failed)
	testkit.Equal(t, "reason", got.Reason, jobs.ReasonLost)
	testkit.Len(t, "processes that are left", commandsOf(task.WorkerID), 0)
}

func TestLeftOverCommandsOfKilledWorkerAndGuardianAreKilledBeforeRetry(t *testing.T) {
	t.Parallel()
	r := runnerkit.Open(t, runner.Options{})
	task, worker, members := startProcessTree(t, r, longLease)
	guardian := guardianOf(t, task.WorkerID)
	signal(t, worker.Pid, syscall.SIGSTOP) // stop the worker, so that it cannot kill the processes when its guardian dies
	signal(t, guardian, syscall.SIGKILL)
	signal(t, worker.Pid, syscall.SIGKILL)
	_, _ = worker.Wait()
	handlers(r)
	began := time.Now()
	runnerkit.Work(t, r, runner.WorkOptions{Grace: -1})
	until(t, r, func() bool { got := runnerkit.Get(t, r, task.ID); return got.State == jobs.Running && got.Losses == 1 })
	t.Log("runs again after", time.Since(began))
	testkit.Len(t, "processes that are left", commandsOf(task.WorkerID), 0)
	if n := living(members); n > 0 {
		t.Errorf("got %d living processes of the process tree, want none", n)
	}
}

func TestStoppedWorkerLosesItsTasksAndResults(t *testing.T) {
	t.Parallel()
	r := runnerkit.Open(t, runner.Options{})
	handlers(r)
	task, worker, members := startProcessTree(t, r, 2*runner.MinLease)
	runnerkit.Work(t, r, runner.WorkOptions{Grace: -1})
	stopOutsideTransaction(t, r, worker.Pid)
	lease := runnerkit.Get(t, r, task.ID).LeaseExpiresAt // the stopped worker does not renew this lease
	var died time.Time
	testkit.Eventually(t, "the end of the process tree", func() bool { died = time.Now(); return living(members) == 0 })
	t.Log("all dead", lease.Sub(died), "before the end of the lease")
	until(t, r, func() bool { got := runnerkit.Get(t, r, task.ID); return got.State == jobs.Running && got.Losses == 1 })
	again := runnerkit.Get(t, r, task.ID)
	if again.StartedAt.Before(lease) {
		t.Errorf("got a start of the retry at %v, want one after the end of the lease at %v", again.StartedAt, lease)
	}
	signal(t, worker.Pid, syscall.SIGCONT)
	// After the lease has expired, any worker may run the task, even the
	// stopped worker when it continues. But the database rejects writes for the
	// old claim.
	next := runnerkit.Enqueue(t, r, quick.With(nil))
	until(t, r, func() bool { return runnerkit.Get(t, r, next.ID).State == jobs.Completed })
	got := runnerkit.Get(t, r, task.ID)
	testkit.Equal(t, "generation ID", got.GenerationID, again.GenerationID)
	testkit.Equal(t, "state", got.State, jobs.Running)
}

// TestOnlyWorkerContinuesItsTasksAfterStop stops a worker for longer than its
// lease, as ^Z or a frozen container does. There is no other worker that could
// take over the tasks, so the worker then continues them.
func TestOnlyWorkerContinuesItsTasksAfterStop(t *testing.T) {
	t.Parallel()
	r := runnerkit.Open(t, runner.Options{})
	task := runnerkit.Enqueue(t, r, hang.With(nil))
	worker := startWorker(t, r, 2, runner.MinLease)
	// The test waits until the function runs, because a worker that stops gives
	// back a task that it has claimed and not started.
	until(t, r, func() bool { return runnerkit.Get(t, r, task.ID).Progress != nil })
	stopOutsideTransaction(t, r, worker.Pid)
	before := runnerkit.Get(t, r, task.ID)
	due := runnerkit.Enqueue(t, r, quick.With(nil))
	testkit.Eventually(t, "the end of the lease", func() bool { return time.Now().After(before.LeaseExpiresAt) })
	signal(t, worker.Pid, syscall.SIGCONT)
	until(t, r, func() bool {
		return runnerkit.Get(t, r, due.ID).State == jobs.Completed &&
			runnerkit.Get(t, r, task.ID).LeaseExpiresAt.After(before.LeaseExpiresAt)
	})
	got := runnerkit.Get(t, r, task.ID)
	testkit.Equal(t, "generation ID", got.GenerationID, before.GenerationID)
	testkit.Equal(t, "state", got.State, jobs.Running)
	testkit.Equal(t, "losses", got.Losses, 0)
}

func TestCommandsOfStoppedWorkerAndGuardianAreKilledAfterLease(t *testing.T) {
	t.Parallel()
	r := runnerkit.Open(t, runner.Options{})
	handlers(r)
	task, worker, members := startProcessTree(t, r, 2*runner.MinLease)
	runnerkit.Work(t, r, runner.WorkOptions{Grace: -1})
	guardian := guardianOf(t, task.WorkerID)
	stopOutsideTransaction(t, r, worker.Pid)
	signal(t, guardian, syscall.SIGSTOP)
	began := time.Now()
	until(t, r, func() bool { got := runnerkit.Get(t, r, task.ID); return got.State == jobs.Running && got.Losses == 1 })
	t.Log("runs again after", time.Since(began))
	if n := living(members); n > 0 {
		t.Errorf("got %d living processes of the process tree, want none", n)
	}
	signal(t, guardian, syscall.SIGCONT)
	signal(t, worker.Pid, syscall.SIGKILL)
	testkit.Eventually(t, "the guardian's end", func() bool { return !alive(guardian) })
}

// TestKilledGuardianEndsOnlyItsOwnCommand kills guardians that have started a
// command, again and again. Each kill ends only the command of that guardian,
// and the worker continues.
func TestKilledGuardianEndsOnlyItsOwnCommand(t *testing.T) {
	t.Parallel()
	r := runnerkit.Open(t, runner.Options{})
	handlers(r)
	neighbour := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"sleep", "600"}}))
	runnerkit.Work(t, r, runner.WorkOptions{Grace: -1})
	var worker string
	testkit.Eventually(t, "a command", func() bool {
		got := runnerkit.Get(t, r, neighbour.ID)
		worker = got.WorkerID
		return got.State == jobs.Running && len(commandsOf(worker)) == 1
	})
	spared := parentOf(commandsOf(worker)[0])
	const kills = 5
	task := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"sleep", "600"}}, jobs.MaxLosses(3*kills)))
	for losses := range kills {
		var command int
		testkit.Eventually(t, "a command", func() bool {
			got, all := runnerkit.Get(t, r, task.ID), commandsOf(worker)
			i := slices.IndexFunc(all, func(pid int) bool { return parentOf(pid) != spared })
			if got.State == jobs.Running && got.Losses == losses && i >= 0 {
				command = all[i]
				return true
			}
			return false
		})
		guardian := parentOf(command)
		if guardian <= 1 {
			t.Fatalf("got guardian %d of command %d, want a process", guardian, command)
		}
		signal(t, guardian, syscall.SIGKILL)
		until(t, r, func() bool { return runnerkit.Get(t, r, task.ID).Losses == losses+1 })
		if alive(command) {
			t.Errorf("got living command %d after its guardian was killed, want it dead", command)
		}
	}
	got := runnerkit.Get(t, r, neighbour.ID)
	testkit.Equal(t, "the neighbour: state", got.State, jobs.Running)
	testkit.Equal(t, "the neighbour: losses", got.Losses, 0)
	testkit.Equal(t, "the neighbour: worker ID", got.WorkerID, worker)
}

// TestGuardiansThatDieAtOnceEndWork checks that a worker ends if its guardians
// die before they have started a command.
func TestGuardiansThatDieAtOnceEndWork(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "guardian")
	script := fmt.Sprintf(`#!/bin/sh
echo '{"Op": "hello", "Version": "%s"}' >&3
exit 1
`, db.RunnerVersion)
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	r := runnerkit.Open(t, runner.Options{})
	r.Register(commands.Handler(commands.Options{GuardianPath: path}))
	task := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"true"}}))
	err := r.Work(t.Context(), runner.WorkOptions{Grace: -1})
	if want := "3 guardians in a row died before they had started a command"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	got := runnerkit.Get(t, r, task.ID)
	testkit.Equal(t, "state", got.State, jobs.Pending)
	testkit.Equal(t, "attempt", got.Attempt, 0)
}

func TestStoppedGuardianIsReplaced(t *testing.T) {
	t.Parallel()
	r := runnerkit.Open(t, runner.Options{})
	handlers(r)
	task := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"sleep", "600"}}))
	runnerkit.Work(t, r, runner.WorkOptions{Grace: -1, Lease: runner.MinLease})
	var worker string
	testkit.Eventually(t, "a command", func() bool {
		worker = runnerkit.Get(t, r, task.ID).WorkerID
		return runnerkit.Get(t, r, task.ID).State == jobs.Running && len(commandsOf(worker)) == 1
	})
	command := commandsOf(worker)
	signal(t, guardianOf(t, worker), syscall.SIGSTOP)
	began := time.Now()
	until(t, r, func() bool { return runnerkit.Get(t, r, task.ID).Losses == 1 })
	t.Log("replaced after", time.Since(began))
	testkit.Equal(t, "living commands of the stopped guardian", living(command), 0)
}

func TestCommandsNeedCallOfGuardianInMain(t *testing.T) {
	t.Parallel()
	r := runnerkit.Open(t, runner.Options{})
	task := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"true"}}))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := func(guardian string) (string, error) {
		c := exec.Command(self)
		c.Env = append(os.Environ(), unhookedVariable+"="+admin.Path(r), "GUARDIAN="+guardian)
		out, err := c.Output()
		return string(out), err
	}
	out, err := program("")
	testkit.Contains(t, out, "unguarded")
	if err == nil {
		t.Error("got no error from a program without a guardian, want one")
	}
	// The program /bin/true prints nothing, like a program whose main does not
	// call Guardian.
	out, err = program("/bin/true")
	testkit.Contains(t, out, "no hello")
	if err == nil {
		t.Error("got no error from a program with a silent guardian, want one")
	}
	got := runnerkit.Get(t, r, task.ID)
	testkit.Equal(t, "state", got.State, jobs.Pending)
	testkit.Equal(t, "attempt", got.Attempt, 0)
	testkit.Equal(t, "losses", got.Losses, 0)
	// The guardian of this worker is the test program. Its environment lacks
	// unhookedVariable, so its TestMain calls Guardian.
	if out, err := program(self); err != nil {
		t.Errorf("got output %q and error %v, want no error", out, err)
	}
	testkit.Equal(t, "state", runnerkit.Get(t, r, task.ID).State, jobs.Completed)
}

func TestFunctionsNeedNoGuardian(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	var guardians []int
	r.Register(quick.Handler(func(context.Context, any) error {
		guardians = slices.DeleteFunc(pids("cmdline", "runner-guardian"), func(pid int) bool { return parentOf(pid) != os.Getpid() })
		return nil
	}))
	runnerkit.Enqueue(t, r, quick.With(nil))
	runnerkit.Drain(t, r)
	testkit.Len(t, "guardians of this process", guardians, 0)
}

// TestGuardianThatIsKilledWhileItStartsIsReplaced kills the first guardian of a
// worker during its start. The worker starts another one.
func TestGuardianThatIsKilledWhileItStartsIsReplaced(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\n[ -e '%[1]s/killed' ] || { : >'%[1]s/killed'; kill -9 $$; }\nexec '%[2]s' \"$@\"\n", dir, self)
	path := filepath.Join(dir, "guardian")
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	r := runnerkit.Open(t, runner.Options{})
	r.Register(commands.Handler(commands.Options{GuardianPath: path}))
	task := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"true"}}))
	runnerkit.Drain(t, r)
	if got := runnerkit.Get(t, r, task.ID); got.State != jobs.Completed || got.Losses != 0 {
		t.Errorf("got %s, %d losses; want completed, 0", got.State, got.Losses)
	}
}
