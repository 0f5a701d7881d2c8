package runner_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/commands"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// lockFiles lists the lock files of the workers of r.
func lockFiles(t *testing.T, r *runner.Runner) []string {
	t.Helper()
	files, err := filepath.Glob(admin.Path(r) + ".d/*-*.lock")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// startAndKillWorker enqueues a task, lets a worker in another process begin
// it, and kills that worker.
func startAndKillWorker(t *testing.T, r *runner.Runner, lease time.Duration, spec jobs.Spec) jobs.Task {
	t.Helper()
	task := runnerkit.Enqueue(t, r, spec)
	worker := startWorker(t, r, 2, lease)
	until(t, r, func() bool { return runnerkit.Get(t, r, task.ID).State == jobs.Running })
	if err := worker.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := worker.Wait(); err != nil {
		t.Fatal(err)
	}
	return runnerkit.Get(t, r, task.ID)
}

func TestWorkerTakesOverTasksOfItsKilledPredecessor(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	task := startAndKillWorker(t, r, longLease, hang.With(nil))
	once := startAndKillWorker(t, r, longLease, hang.With(nil, jobs.AtMostOnce()))
	task = runnerkit.Get(t, r, task.ID) // the second killed worker had taken over this task, so the task was lost twice
	testkit.Len(t, "lock files after the second worker has reaped the first one", lockFiles(t, r), 1)
	handlers(r)
	runnerkit.Work(t, r, runner.WorkOptions{Grace: -1})
	until(t, r, func() bool {
		return runnerkit.Get(t, r, task.ID).State == jobs.Running && runnerkit.Get(t, r, task.ID).WorkerID != task.WorkerID &&
			runnerkit.Get(t, r, once.ID).State == jobs.Failed
	})
	got := runnerkit.Get(t, r, task.ID)
	testkit.Equal(t, "losses", got.Losses, 2)
	testkit.Equal(t, "attempt", got.Attempt, 1)
	got = runnerkit.Get(t, r, once.ID)
	testkit.Equal(t, "reason", got.Reason, jobs.ReasonLost)
	testkit.Equal(t, "losses", got.Losses, 1)
	attempts, err := admin.Attempts(t.Context(), r, runnerkit.Get(t, r, once.ID))
	testkit.NoError(t, err)
	testkit.Len(t, "attempts", attempts, 1)
	testkit.Equal(t, "attempts[0]: reason", attempts[0].Reason, jobs.ReasonLost)
	testkit.Equal(t, "attempts[0]: counted", attempts[0].Counted, false)
	testkit.Len(t, "lock files", lockFiles(t, r), 1)
}

func TestLiveWorkerTakesOverWithoutWaitingForLease(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	handlers(r)
	task := runnerkit.Enqueue(t, r, hang.With(nil))
	worker := startWorker(t, r, 1, longLease)
	until(t, r, func() bool { return runnerkit.Get(t, r, task.ID).State == jobs.Running })
	runnerkit.Work(t, r, runner.WorkOptions{Grace: -1})
	until(t, r, func() bool { return len(lockFiles(t, r)) == 2 })
	began := time.Now()
	if err := worker.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, r, func() bool { got := runnerkit.Get(t, r, task.ID); return got.Losses == 1 && got.State == jobs.Running })
	t.Log("taken over after", time.Since(began))
	got := runnerkit.Get(t, r, task.ID)
	testkit.Equal(t, "attempt", got.Attempt, 1)
	testkit.Equal(t, "generation ID", got.GenerationID, task.GenerationID+3)
}

func TestWorkerWithoutItsLockFileIsReapedAfterItsLease(t *testing.T) {
	t.Parallel()
	r := runnerkit.Open(t, runner.Options{})
	handlers(r)
	task := startAndKillWorker(t, r, runner.MinLease, hang.With(nil))
	for _, file := range lockFiles(t, r) {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	runnerkit.Work(t, r, runner.WorkOptions{Grace: -1, Lease: runner.MinLease})
	until(t, r, func() bool { return runnerkit.Get(t, r, task.ID).Losses == 1 })
	if took := time.Since(began); took < runner.MinLease {
		t.Errorf("got the task reaped after %v, want at least %v", took, runner.MinLease)
	}
}

func TestStrayLockFilesAreRemovedWhenOld(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	handlers(r)
	testkit.NoError(t, os.MkdirAll(admin.Path(r)+".d", 0o700))
	stray := func(name string, age time.Duration) string {
		path := filepath.Join(admin.Path(r)+".d", name)
		if err := os.WriteFile(path, []byte("C"), 0o600); err != nil {
			t.Fatal(err)
		}
		at := time.Now().Add(-age)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
		return path
	}
	old, young, other := stray("0aa-1.lock", time.Hour), stray("0aa-2.lock", time.Second), stray("init.lock", time.Hour)
	runnerkit.Drain(t, r)
	for path, want := range map[string]bool{old: false, young: true, other: true} {
		_, err := os.Stat(path)
		testkit.Equal(t, "result", (err == nil), want)
	}
	testkit.Len(t, "lock files after a clean end", lockFiles(t, r), 1)
}

// TestWorkerRecreatesRemovedDirectoryOfItsDatabase removes the directory beside
// the database. The worker makes it again, because results and locks need it.
func TestWorkerRecreatesRemovedDirectoryOfItsDatabase(t *testing.T) {
	t.Parallel()
	r := runnerkit.Open(t, runner.Options{})
	r.Register(commands.Handler(commands.Options{}))
	dir := admin.Path(r) + ".d"
	spec := command.Command{Argv: []string{"sh", "-c", `echo '"kept"' >"$RUNNER_RESULT"`}}
	runnerkit.Work(t, r, runner.WorkOptions{Lease: runner.MinLease})
	first := runnerkit.Enqueue(t, r, jobs.Command(spec))
	until(t, r, func() bool { return runnerkit.Get(t, r, first.ID).State.Finished() })
	remove := func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	for name, spec := range map[string]jobs.Spec{"alone": jobs.Command(spec),
		"with a dependency": jobs.Command(spec, jobs.DependsOn(first.ID))} {
		task := runnerkit.Enqueue(t, r, spec)
		until(t, r, func() bool { return runnerkit.Get(t, r, task.ID).State.Finished() })
		if got := runnerkit.Get(t, r, task.ID); got.State != jobs.Completed || string(got.Result) != `"kept"` {
			t.Errorf("%s: got %s with result %s (%s), want completed with result \"kept\"", name, got.State, got.Result, got.Error)
		}
		remove()
	}
	testkit.Eventually(t, "the directory, by a worker that starts nothing", func() bool {
		info, err := os.Stat(dir)
		return err == nil && info.Mode().Perm() == 0o700
	})
}
