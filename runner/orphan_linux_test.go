package runner_test

import (
	"os/exec"
	"slices"
	"testing"
	"time"

	"example.com/runner/internal/orphans"
	"example.com/runner/internal/supervisor"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// startOrphan starts a process that is marked as belonging to a claim. The
// process has no guardian that would kill it.
func startOrphan(t *testing.T, task jobs.Task, generation int64) int {
	t.Helper()
	p := exec.Command("sleep", "300")
	p.Env = supervisor.Mark{Worker: task.WorkerID, Key: supervisor.Key{ID: task.ID, Generation: generation}}.Environ()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
	})
	return p.Process.Pid
}

func TestProcessesThatOutliveTheirAttemptAreReported(t *testing.T) {
	t.Parallel()
	r := runnerkit.Open(t, runner.Options{})
	handlers(r)
	over := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"true"}}))
	runs := runnerkit.Enqueue(t, r, jobs.Command(command.Command{Argv: []string{"sleep", "300"}}, func(s *jobs.Spec) { s.KillAfter = 0 }))
	runnerkit.Work(t, r, runner.WorkOptions{Grace: -1})
	until(t, r, func() bool {
		return runnerkit.Get(t, r, over.ID).State == jobs.Completed && runnerkit.Get(t, r, runs.ID).State == jobs.Running
	})
	found, err := orphans.Find(t.Context(), r)
	testkit.Len(t, "orphan processes", found, 0)
	testkit.NoError(t, err)
	over, runs = runnerkit.Get(t, r, over.ID), runnerkit.Get(t, r, runs.ID)
	over.WorkerID = runs.WorkerID
	want := []int{startOrphan(t, over, 2), startOrphan(t, runs, runs.GenerationID-1)}
	startOrphan(t, runs, runs.GenerationID) // this process is marked with a claim that still runs, so it is not an orphan
	stranger := runs
	stranger.WorkerID = "00000000-0000-0000-0000-000000000000"
	startOrphan(t, stranger, 1)
	began := time.Now()
	found, err = orphans.Find(t.Context(), r)
	testkit.NoError(t, err)
	testkit.Len(t, "orphan processes", found, 2)
	if time.Since(began) < time.Second {
		t.Fatalf("got the orphans after %v, want two looks at least a second apart", time.Since(began))
	}
	for _, s := range found {
		testkit.Equal(t, "name of the process", s.Name, "sleep")
		testkit.Equal(t, "alone", s.Alone, false)
		if !slices.Contains(want, s.PID) || s.TaskID != over.ID && s.TaskID != runs.ID {
			t.Errorf("got orphan %d of task %d, want one of %v of task %d or %d", s.PID, s.TaskID, want, over.ID, runs.ID)
		}
	}
}
