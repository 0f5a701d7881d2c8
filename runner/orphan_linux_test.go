package runner_test

import (
	"os/exec"
	"slices"
	"testing"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/supervisor"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// outlive starts a process that has the mark of a claim, but no guardian that would kill the process.
func outlive(t *testing.T, task jobs.Task, generation int64) int {
	t.Helper()
	p := exec.Command("sleep", "300")
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	mark := supervisor.MarkOf(task.WorkerID, supervisor.Key{ID: task.ID, Generation: generation})
	if err := supervisor.SetMark(p.Process.Pid, mark); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
	})
	return p.Process.Pid
}

func TestWhatOutlivesItsAttemptIsNamed(t *testing.T) {
	t.Parallel()
	r := open(t, runner.Options{Grace: -1})
	handlers(r)
	over := enqueue(t, r, jobs.Command{Argv: []string{"true"}}.With())
	runs := enqueue(t, r, jobs.Command{Argv: []string{"sleep", "300"}}.With(jobs.KillAfter(0)))
	work(t, r)
	until(t, r, func() bool {
		return get(t, r, over.ID).State == jobs.Completed && get(t, r, runs.ID).State == jobs.Running
	})
	if found, err := admin.OrphanProcesses(t.Context(), r); len(found) != 0 || err != nil {
		t.Fatalf("got %+v, %v; want len(found) = 0, no error", found, err)
	}
	over, runs = get(t, r, over.ID), get(t, r, runs.ID)
	over.WorkerID = runs.WorkerID
	want := []int{outlive(t, over, 2), outlive(t, runs, runs.GenerationID-1)}
	outlive(t, runs, runs.GenerationID) // a process of the running claim is no orphan
	stranger := runs
	stranger.WorkerID = "00000000-0000-0000-0000-000000000000"
	outlive(t, stranger, 1)
	began := time.Now()
	found, err := admin.OrphanProcesses(t.Context(), r)
	if err != nil || len(found) != 2 || time.Since(began) < time.Second {
		t.Fatalf("got %+v, %v; want no error, len(found) = 2, Since(began) >= Second", found, err)
	}
	for _, s := range found {
		if !slices.Contains(want, s.PID) || s.Name != "sleep" || s.Alone || s.TaskID != over.ID && s.TaskID != runs.ID {
			t.Errorf(`got %+v; want Contains(want, PID), Name = "sleep", not (Alone), not (TaskID != over.ID && TaskID != runs.ID)`, s)
		}
	}
}
