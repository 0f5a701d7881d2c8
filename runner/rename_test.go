package runner_test

import (
	"context"
	"slices"
	"testing"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

var (
	oldMail = jobs.Define[string]("email.send", jobs.MaxAttempts(2))
	newMail = jobs.Define[string]("mail.send", jobs.MaxAttempts(3))
)

// TestWorkerOfOldProgramLeavesTasksWithNewName runs the old and the new program
// at the same time during a rename. A worker of the old program does not know
// the new name, and leaves the tasks with that name to workers of the new
// program.
func TestWorkerOfOldProgramLeavesTasksWithNewName(t *testing.T) {
	before := runnerkit.Open(t, runner.Options{})
	none := func(context.Context, string) error { return nil }
	before.Register(oldMail.Handler(none))
	testkit.NoError(t, before.SetSchedule(t.Context(), jobs.Schedule{Name: "digest", Cron: "@daily", Spec: oldMail.With("all")}))
	_, err := admin.RunSchedule(t.Context(), before, "digest")
	testkit.NoError(t, err)

	after := runnerkit.OpenAt(t, admin.Path(before), runner.Options{})
	after.Register(newMail.Handler(none), oldMail.Handler(none))
	testkit.NoError(t, after.SetSchedule(t.Context(), jobs.Schedule{Name: "digest", Cron: "@daily", Spec: newMail.With("all")}))
	_, err = admin.RunSchedule(t.Context(), after, "digest")
	testkit.NoError(t, err)
	runnerkit.Drain(t, before)
	testkit.Equal(t, "states after the old worker", jobStates(t, after), []string{"email.send completed", "mail.send pending"})
	runnerkit.Enqueue(t, before, oldMail.With("late"))
	runnerkit.Drain(t, after)
	testkit.Equal(t, "states after the new worker", jobStates(t, after),
		[]string{"email.send completed", "email.send completed", "mail.send completed"})
}

// jobStates returns the job and the state of each task, sorted.
func jobStates(t *testing.T, r *runner.Runner) (list []string) {
	t.Helper()
	for task, err := range r.All(t.Context(), jobs.Filter{}) {
		testkit.NoError(t, err)
		list = append(list, task.Job+" "+string(task.State))
	}
	slices.Sort(list)
	return list
}
