package runner_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"example.com/runner/internal/testkit"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// locks lists the lock files of workers.
func locks(t *testing.T, r *runner.Runner) []string {
	t.Helper()
	files, err := filepath.Glob(r.Path() + ".d/*-*.lock")
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// killed enqueues a task, lets a worker in another process begin it, and kills that worker.
func killed(t *testing.T, r *runner.Runner, lease time.Duration, spec jobs.Spec) jobs.Task {
	t.Helper()
	task := enqueue(t, r, spec)
	worker := startWorker(t, r, 2, lease)
	until(t, r, func() bool { return get(t, r, task.ID).State == jobs.Running })
	if err := worker.Kill(); err != nil {
		t.Fatal(err)
	}
	if _, err := worker.Wait(); err != nil {
		t.Fatal(err)
	}
	return get(t, r, task.ID)
}

func TestALoneWorkerTakesUpWhatItsPredecessorLost(t *testing.T) {
	r := open(t, runner.Options{Grace: -1})
	task := killed(t, r, longLease, hang.With(nil))
	once := killed(t, r, longLease, hang.With(nil, jobs.AtMostOnce()))
	task = get(t, r, task.ID)          // the second worker had taken the task over and was lost, too
	if n := len(locks(t, r)); n != 1 { // the second worker has reaped the first one
		t.Error(n, "locks")
	}
	handlers(r)
	work(t, r)
	until(t, r, func() bool {
		return get(t, r, task.ID).State == jobs.Running && get(t, r, task.ID).WorkerID != task.WorkerID &&
			get(t, r, once.ID).State == jobs.Failed
	})
	if got := get(t, r, task.ID); got.Losses != 2 || got.Attempt != 1 {
		t.Errorf("got %+v; want Losses = 2, Attempt = 1", got)
	}
	if got := get(t, r, once.ID); got.Reason != jobs.ReasonLost || got.Losses != 1 {
		t.Errorf("got %+v; want Reason = ReasonLost, Losses = 1", got)
	}
	attempts, err := r.Attempts(t.Context(), get(t, r, once.ID))
	if err != nil || len(attempts) != 1 || attempts[0].Reason != jobs.ReasonLost || attempts[0].Counted {
		t.Errorf("got %+v, %v; want no error, len(attempts) = 1, attempts[0].Reason = ReasonLost, not "+
			"(attempts[0].Counted)",
			attempts, err)
	}
	if n := len(locks(t, r)); n != 1 {
		t.Error(n, "locks")
	}
}

func TestALiveWorkerTakesOverWithoutWaitingForTheLease(t *testing.T) {
	r := open(t, runner.Options{Grace: -1})
	handlers(r)
	task := enqueue(t, r, hang.With(nil))
	worker := startWorker(t, r, 1, longLease)
	until(t, r, func() bool { return get(t, r, task.ID).State == jobs.Running })
	work(t, r)
	until(t, r, func() bool { return len(locks(t, r)) == 2 })
	began := time.Now()
	if err := worker.Kill(); err != nil {
		t.Fatal(err)
	}
	until(t, r, func() bool { got := get(t, r, task.ID); return got.Losses == 1 && got.State == jobs.Running })
	t.Log("taken over after", time.Since(began))
	if got := get(t, r, task.ID); got.Attempt != 1 || got.GenerationID != task.GenerationID+3 {
		t.Errorf("got %+v; want Attempt = 1, GenerationID = task.GenerationID+3", got)
	}
}

func TestWithoutItsLockFileAWorkerIsReapedByLeaseOnly(t *testing.T) {
	t.Parallel()
	r := open(t, runner.Options{Grace: -1, Lease: runner.MinLease})
	handlers(r)
	task := killed(t, r, runner.MinLease, hang.With(nil))
	for _, file := range locks(t, r) {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	work(t, r)
	until(t, r, func() bool { return get(t, r, task.ID).Losses == 1 })
	if took := time.Since(began); took < runner.MinLease {
		t.Errorf("reaped after %v", took)
	}
}

func TestStrayLockFilesAreRemovedWhenOld(t *testing.T) {
	r := open(t, runner.Options{})
	handlers(r)
	stray := func(name string, age time.Duration) string {
		path := filepath.Join(r.Path()+".d", name)
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
	drain(t, r)
	for path, want := range map[string]bool{old: false, young: true, other: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("got %+v, %v; want (err == nil) = want", filepath.Base(path), err)
		}
	}
	if n := len(locks(t, r)); n != 1 {
		t.Error(n, "locks: a clean end leaves none")
	}
}

// TestADirectoryThatWasRemovedUnderAWorkerIsMadeAgain removes the directory beside the database. The worker makes it again, because
// results and locks need it.
func TestADirectoryThatWasRemovedUnderAWorkerIsMadeAgain(t *testing.T) {
	t.Parallel()
	r := open(t, runner.Options{Lease: runner.MinLease})
	r.Register(runner.Commands(runner.CommandOptions{}))
	dir := r.Path() + ".d"
	spec := jobs.Command{Argv: []string{"sh", "-c", `echo '"kept"' >"$RUNNER_RESULT"`}}
	work(t, r)
	first := enqueue(t, r, spec.With())
	until(t, r, func() bool { return get(t, r, first.ID).State.Finished() })
	remove := func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	for name, spec := range map[string]jobs.Spec{"alone": spec.With(), "with a dependency": spec.With(jobs.After(first.ID))} {
		task := enqueue(t, r, spec)
		until(t, r, func() bool { return get(t, r, task.ID).State.Finished() })
		if got := get(t, r, task.ID); got.State != jobs.Completed || string(got.Result) != `"kept"` {
			t.Errorf("%s: got %s with result %s (%s), want completed with result \"kept\"", name, got.State, got.Result, got.Error)
		}
		remove()
	}
	testkit.Eventually(t, "the directory, by a worker that starts nothing", func() bool {
		info, err := os.Stat(dir)
		return err == nil && info.Mode().Perm() == 0o700
	})
}
