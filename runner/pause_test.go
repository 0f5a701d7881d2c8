package runner_test

import (
	"testing"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

func TestPausedTaskStartsAfterResume(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	handlers(r)
	paused, other := runnerkit.Enqueue(t, r, quick.With(nil)).ID, runnerkit.Enqueue(t, r, quick.With(nil)).ID
	results, err := r.Pause(t.Context(), []int64{paused}, runner.PauseOptions{Reason: "audit"})
	testkit.NoError(t, err)
	testkit.Equal(t, "result", results, []jobs.ActionResult{{ID: paused, State: jobs.Blocked, Done: true}})

	runnerkit.Drain(t, r)
	testkit.Equal(t, "state of the other task", runnerkit.Get(t, r, other).State, jobs.Completed)
	task := runnerkit.Get(t, r, paused)
	testkit.Equal(t, "state of the paused task", task.State, jobs.Blocked)
	testkit.Equal(t, "reason of the pause", task.PausedReason, "audit")

	results, err = r.Pause(t.Context(), []int64{other, 99}, runner.PauseOptions{})
	testkit.NoError(t, err)
	testkit.Equal(t, "results of a finished task and of none", results,
		[]jobs.ActionResult{{ID: other, State: jobs.Completed}, {ID: 99}})

	_, err = r.Resume(t.Context(), []int64{paused})
	testkit.NoError(t, err)
	runnerkit.Drain(t, r)
	testkit.Equal(t, "state after the resume", runnerkit.Get(t, r, paused).State, jobs.Completed)
}
