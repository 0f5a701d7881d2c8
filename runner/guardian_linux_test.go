package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"example.com/runner/internal/testkit"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

func TestKilledWorkerLeavesNothingAndIsTakenOver(t *testing.T) {
	t.Parallel()
	r := open(t, runner.Options{Grace: -1})
	handlers(r)
	task, worker, members := runningFamily(t, r, longLease)
	once := enqueue(t, r, jobs.Command{Argv: []string{"sleep", "60"}}.With(jobs.AtMostOnce()))
	until(t, r, func() bool { return get(t, r, once.ID).State == jobs.Running })
	work(t, r)
	until(t, r, func() bool { return len(locks(t, r)) == 2 })
	began := time.Now()
	signal(t, worker.Pid, syscall.SIGKILL)
	testkit.Eventually(t, "all dead", func() bool { return living(members) == 0 })
	t.Log("all dead after", time.Since(began))
	until(t, r, func() bool { got := get(t, r, task.ID); return got.State == jobs.Running && got.Losses == 1 })
	t.Log("runs again after", time.Since(began))
	if got := get(t, r, once.ID); got.State != jobs.Failed || got.Reason != jobs.ReasonLost {
		t.Errorf("got %+v; want State = Failed, Reason = ReasonLost", got)
	}
	if left := commandsOf(task.WorkerID); len(left) > 0 {
		t.Errorf("got %+v, want len(left) <= 0", left)
	}
}

func TestBothKilledAreSweptBeforeTheTaskRunsAgain(t *testing.T) {
	t.Parallel()
	r := open(t, runner.Options{Grace: -1})
	task, worker, members := runningFamily(t, r, longLease)
	guardian := guardianOf(t, task.WorkerID)
	signal(t, worker.Pid, syscall.SIGSTOP) // so that the worker cannot clean up in between
	signal(t, guardian, syscall.SIGKILL)
	signal(t, worker.Pid, syscall.SIGKILL)
	_, _ = worker.Wait()
	handlers(r)
	began := time.Now()
	work(t, r)
	until(t, r, func() bool { got := get(t, r, task.ID); return got.State == jobs.Running && got.Losses == 1 })
	t.Log("runs again after", time.Since(began))
	if left := commandsOf(task.WorkerID); len(left) > 0 {
		t.Errorf("got %+v, want len(left) <= 0", left)
	}
	if n := living(members); n > 0 {
		t.Error(n, "of the family live")
	}
}

func TestStoppedWorkerLosesItsTasksAndItsResults(t *testing.T) {
	t.Parallel()
	r := open(t, runner.Options{Grace: -1})
	handlers(r)
	task, worker, members := runningFamily(t, r, runner.MinLease)
	work(t, r)
	halt(t, r, worker.Pid)
	lease := get(t, r, task.ID).LeaseExpiresAt // the stopped worker does not renew it
	var died time.Time
	testkit.Eventually(t, "the end of the family", func() bool { died = time.Now(); return living(members) == 0 })
	t.Log("all dead", lease.Sub(died), "before the end of the lease")
	until(t, r, func() bool { got := get(t, r, task.ID); return got.State == jobs.Running && got.Losses == 1 })
	again := get(t, r, task.ID)
	if again.StartedAt.Before(lease) {
		t.Errorf("runs again at %v, and the lease lasted until %v", again.StartedAt, lease)
	}
	signal(t, worker.Pid, syscall.SIGCONT)
	// Any worker may run this task. The stopped worker can write again, but the database refuses its writes for the old claim.
	next := enqueue(t, r, quick.With(nil))
	until(t, r, func() bool { return get(t, r, next.ID).State == jobs.Completed })
	if got := get(t, r, task.ID); got.GenerationID != again.GenerationID || got.State != jobs.Running {
		t.Errorf("got %+v; want GenerationID = again.GenerationID, State = Running", got)
	}
}

// TestALoneWorkerThatWasStoppedGoesOn stops a worker, as ^Z or a frozen container does. The worker then continues its tasks, because no
// other worker has taken them over.
func TestALoneWorkerThatWasStoppedGoesOn(t *testing.T) {
	t.Parallel()
	r := open(t, runner.Options{})
	task := enqueue(t, r, hang.With(nil))
	worker := startWorker(t, r, 2, runner.MinLease)
	// The task has begun; a task that was only claimed would be given back.
	until(t, r, func() bool { return get(t, r, task.ID).Progress != nil })
	halt(t, r, worker.Pid)
	before := get(t, r, task.ID)
	due := enqueue(t, r, quick.With(nil))
	testkit.Within(t, time.Minute, "the end of the lease", func() bool { return time.Now().After(before.LeaseExpiresAt) })
	signal(t, worker.Pid, syscall.SIGCONT)
	until(t, r, func() bool {
		return get(t, r, due.ID).State == jobs.Completed && get(t, r, task.ID).LeaseExpiresAt.After(before.LeaseExpiresAt)
	})
	if got := get(t, r, task.ID); got.GenerationID != before.GenerationID || got.State != jobs.Running || got.Losses != 0 {
		t.Errorf("got %+v; want GenerationID = before.GenerationID, State = Running, Losses = 0", got)
	}
}

func TestBothStoppedAreSweptWhenTheLeaseIsOver(t *testing.T) {
	t.Parallel()
	r := open(t, runner.Options{Grace: -1})
	handlers(r)
	task, worker, members := runningFamily(t, r, runner.MinLease)
	work(t, r)
	guardian := guardianOf(t, task.WorkerID)
	halt(t, r, worker.Pid)
	signal(t, guardian, syscall.SIGSTOP)
	began := time.Now()
	until(t, r, func() bool { got := get(t, r, task.ID); return got.State == jobs.Running && got.Losses == 1 })
	t.Log("runs again after", time.Since(began))
	if n := living(members); n > 0 {
		t.Error(n, "of the family live")
	}
	signal(t, guardian, syscall.SIGCONT)
	signal(t, worker.Pid, syscall.SIGKILL)
	testkit.Eventually(t, "the guardian's end", func() bool { return !alive(guardian) })
}

// TestAKilledGuardianCostsItsOwnCommandOnly kills guardians that have started a command, again and again. Each kill ends only the command
// of that guardian, and the worker continues.
func TestAKilledGuardianCostsItsOwnCommandOnly(t *testing.T) {
	t.Parallel()
	r := open(t, runner.Options{Grace: -1})
	handlers(r)
	neighbour := enqueue(t, r, jobs.Command{Argv: []string{"sleep", "60"}}.With())
	work(t, r)
	var worker string
	testkit.Eventually(t, "a command", func() bool {
		got := get(t, r, neighbour.ID)
		worker = got.WorkerID
		return got.State == jobs.Running && len(commandsOf(worker)) == 1
	})
	spared := parentOf(commandsOf(worker)[0])
	const kills = 5
	task := enqueue(t, r, jobs.Command{Argv: []string{"sleep", "60"}}.With(jobs.MaxLosses(3*kills)))
	for losses := range kills {
		var command int
		testkit.Eventually(t, "a command", func() bool {
			got, all := get(t, r, task.ID), commandsOf(worker)
			i := slices.IndexFunc(all, func(pid int) bool { return parentOf(pid) != spared })
			if got.State == jobs.Running && got.Losses == losses && i >= 0 {
				command = all[i]
				return true
			}
			return false
		})
		signal(t, parentOf(command), syscall.SIGKILL)
		until(t, r, func() bool { return get(t, r, task.ID).Losses == losses+1 })
		if alive(command) {
			t.Error("the command lives")
		}
	}
	if got := get(t, r, neighbour.ID); got.State != jobs.Running || got.Losses != 0 || got.WorkerID != worker {
		t.Errorf("the neighbour: %+v", got)
	}
}

// text encodes a short text of a message between worker and guardian.
func text(s string) []byte { return append([]byte{byte(2 * len(s))}, s...) }

// TestGuardiansThatDieAtOnceEndTheWork checks that a worker ends if its guardians die before they have started a command.
func TestGuardiansThatDieAtOnceEndTheWork(t *testing.T) {
	t.Parallel()
	const protocol = 3
	hello := slices.Concat(text("hello"), []byte{0, 0, 2 * protocol}, text(runner.Version), make([]byte, 6)) // numbers are varints
	path := filepath.Join(t.TempDir(), "guardian")
	script := fmt.Sprintf("#!/bin/sh\ncat %q >&3\nexit 1\n", path+".hello")
	if err := errors.Join(os.WriteFile(path, []byte(script), 0o700),
		os.WriteFile(path+".hello", append([]byte{0, 0, 0, byte(len(hello))}, hello...), 0o600)); err != nil {
		t.Fatal(err)
	}
	r := open(t, runner.Options{Grace: -1, GuardianPath: path})
	handlers(r)
	task := enqueue(t, r, jobs.Command{Argv: []string{"true"}}.With())
	err := r.Work(t.Context())
	if want := "3 guardians in a row died before they had started a command"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
	if got := get(t, r, task.ID); got.State != jobs.Pending || got.Attempt != 0 {
		t.Errorf("got %+v; want State = Pending, Attempt = 0", got)
	}
}

func TestStoppedGuardianIsReplaced(t *testing.T) {
	t.Parallel()
	r := open(t, runner.Options{Grace: -1, Lease: runner.MinLease})
	handlers(r)
	task := enqueue(t, r, jobs.Command{Argv: []string{"sleep", "60"}}.With())
	work(t, r)
	var worker string
	testkit.Eventually(t, "a command", func() bool {
		worker = get(t, r, task.ID).WorkerID
		return get(t, r, task.ID).State == jobs.Running && len(commandsOf(worker)) == 1
	})
	command := commandsOf(worker)
	signal(t, guardianOf(t, worker), syscall.SIGSTOP)
	began := time.Now()
	until(t, r, func() bool { return get(t, r, task.ID).Losses == 1 })
	t.Log("replaced after", time.Since(began))
	if living(command) > 0 {
		t.Error("the command lives")
	}
}

func TestCommandsNeedTheHook(t *testing.T) {
	t.Parallel()
	r := open(t, runner.Options{})
	task := enqueue(t, r, jobs.Command{Argv: []string{"true"}}.With())
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program := func(guardian string) (string, error) {
		c := exec.Command(self)
		c.Env = append(os.Environ(), unhookedVariable+"="+r.Path(), "GUARDIAN="+guardian)
		out, err := c.Output()
		return string(out), err
	}
	if out, err := program(""); err == nil || !strings.Contains(out, "unguarded") {
		t.Errorf(`got %+v, %v; want an error, Contains(out, "unguarded")`, out, err)
	}
	// The script prints nothing, like a program whose main does not call Guardian.
	if out, err := program("/bin/true"); err == nil || !strings.Contains(out, "no hello") {
		t.Errorf(`got %+v, %v; want an error, Contains(out, "no hello")`, out, err)
	}
	if got := get(t, r, task.ID); got.State != jobs.Pending || got.Attempt != 0 || got.Losses != 0 {
		t.Errorf("got %+v; want State = Pending, Attempt = 0, Losses = 0", got)
	}
	if out, err := program(self); err != nil { // main calls Guardian; the environment is empty
		t.Error(out, err)
	}
	if got := get(t, r, task.ID); got.State != jobs.Completed {
		t.Errorf("got %+v, want State = Completed", got)
	}
}

func TestFunctionsNeedNoGuardian(t *testing.T) {
	r := open(t, runner.Options{})
	var guardians []int
	r.Register(quick.Handler(func(context.Context, any) error {
		guardians = slices.DeleteFunc(pids("cmdline", "runner-guardian"), func(pid int) bool { return parentOf(pid) != os.Getpid() })
		return nil
	}))
	enqueue(t, r, quick.With(nil))
	drain(t, r)
	if len(guardians) > 0 {
		t.Errorf("got %+v, want len(guardians) <= 0", guardians)
	}
}

// TestAGuardianThatIsKilledWhileItStartsIsReplaced kills the first guardian of a worker during its start. The worker starts another one.
func TestAGuardianThatIsKilledWhileItStartsIsReplaced(t *testing.T) {
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
	r := open(t, runner.Options{GuardianPath: path})
	handlers(r)
	task := enqueue(t, r, jobs.Command{Argv: []string{"true"}}.With())
	drain(t, r)
	if got := get(t, r, task.ID); got.State != jobs.Completed || got.Losses != 0 {
		t.Errorf("got %s, %d losses; want completed, 0", got.State, got.Losses)
	}
}
