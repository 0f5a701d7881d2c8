package runner_test

import (
	"database/sql"
	"slices"
	"syscall"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// enqueueSleepCommands enqueues commands that run until they are killed, with
// one attempt each.
func enqueueSleepCommands(t *testing.T, r *runner.Runner, n int, options ...jobs.Option) []jobs.Task {
	t.Helper()
	tasks := make([]jobs.Task, n)
	for i := range tasks {
		tasks[i] = runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"sleep", "600"}},
			append(options, jobs.MaxAttempts(1))...))
	}
	return tasks
}

// lockWrites keeps every process from writing until the returned function is
// called.
func lockWrites(t *testing.T, r *runner.Runner) (unlock func()) {
	t.Helper()
	other, err := sql.Open("sqlite", "file:"+admin.Path(r)+"?_txlock=immediate&_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	tx, err := other.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		_ = tx.Rollback()
		_ = other.Close()
	}
}

// wantNoDeathBySignal checks that no attempt of the tasks ended with the reason
// "signal". Only runner has sent signals in this test, and an attempt that
// runner itself kills must not end with that reason.
func wantNoDeathBySignal(t *testing.T, r *runner.Runner, tasks []jobs.Task) {
	t.Helper()
	for _, task := range tasks {
		got := runnerkit.Get(t, r, task.ID)
		attempts, err := admin.Attempts(t.Context(), r, got)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range attempts {
			if a.State != jobs.Running && (a.Reason == jobs.ReasonSignal || a.Counted) {
				t.Errorf("task %d: attempt ended %s, reason %s, %q; want a loss. The task is %s, with %d losses", task.ID, a.State,
					a.Reason, a.Error,
					got.State, got.Losses)
			}
		}
	}
}

// TestTaskThatRunnerKilledIsLostAndNotFailed stops a worker and its guardian
// for longer than their lease. A second worker begins to take over their tasks,
// but it cannot write and is stopped, too. When the first worker and its
// guardian continue, their commands must still be alive. If the second worker
// had killed them, the first worker would report that a stranger killed its
// commands.
func TestTaskThatRunnerKilledIsLostAndNotFailed(t *testing.T) {
	t.Parallel()
	r := runnerkit.Open(t, runner.Options{})
	const n = 16
	tasks := enqueueSleepCommands(t, r, n)
	victim := startWorker(t, r, n, runner.MinLease)
	until(t, r, func() bool { return runnerkit.Get(t, r, tasks[n-1].ID).State == jobs.Running })
	worker := runnerkit.Get(t, r, tasks[0].ID).WorkerID
	testkit.Eventually(t, "the commands", func() bool { return len(commandsOf(worker)) == n })
	commands := commandsOf(worker)
	reaper := startWorker(t, r, 1, runner.MinLease)
	testkit.Eventually(t, "the other worker", func() bool { return len(lockFiles(t, r)) == 2 })
	stopOutsideTransaction(t, r, victim.Pid)
	guardians := guardiansOf(worker)
	for _, pid := range guardians {
		signal(t, pid, syscall.SIGSTOP)
	}
	unlock := lockWrites(t, r)
	// The other worker finds the expired lease within a second, but cannot
	// revoke the claims while this test holds the write lock. A worker with a
	// bug would kill the commands before it has revoked the claims.
	for end := time.Now().Add(runner.MinLease + 3*time.Second); living(commands) > 0 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
	}
	freeze(t, reaper.Pid)
	if alive := living(commands); alive != n {
		t.Errorf("%d of %d commands live while no claim could be revoked; want all", alive, n)
	}
	unlock()
	for _, pid := range guardians {
		signal(t, pid, syscall.SIGCONT)
	}
	testkit.Eventually(t, "the end of the commands, by their deadline", func() bool { return living(commands) == 0 })
	signal(t, victim.Pid, syscall.SIGCONT)
	until(t, r, func() bool {
		for _, task := range tasks {
			if got := runnerkit.Get(t, r, task.ID); got.State == jobs.Running && got.GenerationID == task.GenerationID+1 {
				return false
			}
		}
		return true
	})
	wantNoDeathBySignal(t, r, tasks)
	signal(t, reaper.Pid, syscall.SIGCONT)
}

// TestReaperThatDiesAfterRevocationIsReplaced revokes the claims of a worker
// that hangs, and kills the reaper right after that. Another reaper must kill
// the processes and record the loss. When the hanging worker continues, the
// database rejects its writes.
func TestReaperThatDiesAfterRevocationIsReplaced(t *testing.T) {
	t.Parallel()
	r := runnerkit.Open(t, runner.Options{})
	handlers(r)
	tasks := enqueueSleepCommands(t, r, 2)
	victim := startWorker(t, r, 2, longLease)
	until(t, r, func() bool { return runnerkit.Get(t, r, tasks[1].ID).State == jobs.Running })
	worker := runnerkit.Get(t, r, tasks[0].ID).WorkerID
	testkit.Eventually(t, "the commands", func() bool { return len(commandsOf(worker)) == 2 })
	commands := commandsOf(worker)
	stopOutsideTransaction(t, r, victim.Pid)
	guardians := guardiansOf(worker)
	for _, pid := range guardians {
		signal(t, pid, syscall.SIGSTOP)
	}
	store, err := db.Open(t.Context(), admin.Path(r), db.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	reaper, err := store.Register(t.Context(), db.WorkerInfo{Name: "dies", Lease: longLease, StartedAt: time.Now()}, nil)
	if err != nil {
		t.Fatal(err)
	}
	leases, err := reaper.Leases(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	revoked, err := reaper.Revoke(t.Context(), leases)
	testkit.NoError(t, err)
	testkit.Len(t, "revoked claims", revoked, 2)
	testkit.Equal(t, "living commands", living(commands), 2)
	runnerkit.Work(t, r, runner.WorkOptions{Grace: -1})
	until(t, r, func() bool {
		first, second := runnerkit.Get(t, r, tasks[0].ID), runnerkit.Get(t, r, tasks[1].ID)
		return first.Losses == 1 && first.State == jobs.Running && second.Losses == 1 && second.State == jobs.Running
	})
	testkit.Equal(t, "living commands of the first attempts", living(commands), 0)
	for _, pid := range guardians {
		signal(t, pid, syscall.SIGCONT)
	}
	signal(t, victim.Pid, syscall.SIGCONT)
	next := runnerkit.Enqueue(t, r, quick.With(nil))
	until(t, r, func() bool { return runnerkit.Get(t, r, next.ID).State == jobs.Completed })
	testkit.Eventually(t, "the end of what the guardian ran", func() bool { return len(commandsOf(worker)) == 0 })
	wantNoDeathBySignal(t, r, tasks)
	for _, task := range tasks {
		if got := runnerkit.Get(t, r, task.ID); got.State != jobs.Running || got.Losses != 1 || got.GenerationID != task.GenerationID+4 {
			t.Errorf("got %s, %d losses, generation %d; want running, 1, %d", got.State, got.Losses, got.GenerationID, task.GenerationID+4)
		}
	}
}

// TestFrozenContainerFailsNoTask stops all workers and guardians for longer
// than their leases, as a frozen container does. When the guardians continue,
// they kill their commands, because another worker could have started the same
// tasks. These tasks are lost. Functions continue, because no reaper takes
// tasks from a worker that has not yet had the time to renew its leases.
func TestFrozenContainerFailsNoTask(t *testing.T) {
	t.Parallel()
	r := runnerkit.Open(t, runner.Options{})
	const lease = runner.MinLease
	commands := enqueueSleepCommands(t, r, 6)
	once := enqueueSleepCommands(t, r, 2, jobs.AtMostOnce())
	all := append(commands, once...)
	startWorker(t, r, 5, lease)
	startWorker(t, r, 5, lease)
	functions := []jobs.Task{runnerkit.Enqueue(t, r, hang.With(nil)), runnerkit.Enqueue(t, r, hang.With(nil))}
	running := func() bool {
		for _, task := range append(all, functions...) {
			if runnerkit.Get(t, r, task.ID).State != jobs.Running {
				return false
			}
		}
		return runnerkit.Get(t, r, functions[0].ID).Progress != nil && runnerkit.Get(t, r, functions[1].ID).Progress != nil
	}
	until(t, r, running)
	list, err := admin.Workers(t.Context(), r)
	testkit.NoError(t, err)
	testkit.Len(t, "workers", list, 2)
	if functions[0] = runnerkit.Get(t, r, functions[0].ID); list[0].ID == functions[0].WorkerID {
		// Make the worker of functions[0] the second one in the list. The first
		// one continues earlier, and has time to check the lease of the second
		// one.
		slices.Reverse(list)
	}
	functions[1] = runnerkit.Get(t, r, functions[1].ID)
	testkit.Eventually(t, "a check by each worker of the other", func() bool { return time.Since(functions[0].StartedAt) > lease })
	var guardians []int
	for _, w := range list {
		stopOutsideTransaction(t, r, w.PID)
		guardians = append(guardians, guardiansOf(w.ID)...)
	}
	for _, pid := range guardians {
		signal(t, pid, syscall.SIGSTOP)
	}
	frozen := time.Now()
	testkit.Eventually(t, "one lease and a half", func() bool { return time.Since(frozen) > lease*3/2 })
	for _, pid := range guardians {
		signal(t, pid, syscall.SIGCONT)
	}
	testkit.Eventually(t, "the end of the commands, by their deadline", func() bool {
		return len(commandsOf(list[0].ID))+len(commandsOf(list[1].ID)) == 0
	})
	signal(t, list[0].PID, syscall.SIGCONT)
	first := time.Now()
	testkit.Eventually(t, "the time for a check by the first worker", func() bool { return time.Since(first) > lease/10 })
	signal(t, list[1].PID, syscall.SIGCONT)
	until(t, r, func() bool {
		for _, task := range all {
			if got := runnerkit.Get(t, r, task.ID); got.State == jobs.Pending || got.State == jobs.Running && got.Losses == 0 {
				return false
			}
		}
		return true
	})
	wantNoDeathBySignal(t, r, all)
	for _, task := range once {
		if got := runnerkit.Get(t, r, task.ID); got.State != jobs.Failed || got.Reason != jobs.ReasonLost {
			t.Errorf("at most once: got %s, reason %q; want failed, lost", got.State, got.Reason)
		}
	}
	for _, task := range functions {
		if got := runnerkit.Get(t, r, task.ID); got.State != jobs.Running || got.GenerationID != task.GenerationID {
			t.Errorf("function: got %s, generation %d, %d losses; want running, generation %d", got.State, got.GenerationID, got.Losses,
				task.GenerationID)
		}
	}
}

// TestStoppedGuardianOfDeadWorkerIsContinued kills a worker while its guardian
// is stopped. The guardian still holds the liveness lock of the worker. Another
// worker must send CONT to the guardian, so that it does not have to wait for
// the end of the lease.
func TestStoppedGuardianOfDeadWorkerIsContinued(t *testing.T) {
	t.Parallel()
	r := runnerkit.Open(t, runner.Options{})
	handlers(r)
	task, victim, members := startProcessTree(t, r, longLease)
	runnerkit.Work(t, r, runner.WorkOptions{Grace: -1})
	testkit.Eventually(t, "the other worker", func() bool { return len(lockFiles(t, r)) == 2 })
	for _, pid := range guardiansOf(task.WorkerID) {
		signal(t, pid, syscall.SIGSTOP)
	}
	signal(t, victim.Pid, syscall.SIGKILL)
	began := time.Now()
	testkit.Eventually(t, "the next attempt", func() bool {
		got := runnerkit.Get(t, r, task.ID)
		return got.State == jobs.Running &&
			got.Losses == 1
	})
	t.Log("runs again after", time.Since(began))
	if n := living(members); n != 0 {
		t.Errorf("got %d living processes of the process tree, want none: their guardian kills them", n)
	}
	wantNoDeathBySignal(t, r, []jobs.Task{task})
}
