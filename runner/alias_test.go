package runner_test

import (
	"context"
	"fmt"
	"log"
	"slices"
	"testing"

	"example.com/runner/internal/testkit"
	"example.com/runner/internal/testkit/runnerkit"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

var (
	oldMail = jobs.Define[string]("email.send", jobs.MaxAttempts(2))
	newMail = jobs.Define[string]("mail.send", jobs.MaxAttempts(3))
)

func TestAHandlerRunsTasksOfItsAliases(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{Concurrency: 1})
	var got []string
	handler := newMail.Handler(func(ctx context.Context, to string) error {
		task, _ := runner.TaskFrom(ctx)
		got = append(got, fmt.Sprint(task.Job, " ", to, " ", task.MaxAttempts))
		return nil
	})
	r.Register(handler.Alias("email.send").Alias("post"))
	testkit.Equal(t, "jobs", r.Jobs(), []string{"email.send", "mail.send", "post"})
	old := runnerkit.Enqueue(t, r, oldMail.With("ann"))
	runnerkit.Enqueue(t, r, newMail.With("bob"))
	runnerkit.Drain(t, r)
	testkit.Equal(t, "calls", got, []string{"email.send ann 2", "mail.send bob 3"})
	to, err := newMail.Args(runnerkit.Get(t, r, old.ID))
	testkit.NoError(t, err)
	testkit.Equal(t, "arguments of a task with the old name", to, "ann")
	testkit.Equal(t, "aliases of the first handler", len(handler.Aliases), 0)
}

// TestAWorkerOfTheOldProgramLeavesTasksWithTheNewName runs the old and the new program at the same time during a rename. A worker of the
// old program does not know the new name, and leaves the tasks with that name to workers of the new program.
func TestAWorkerOfTheOldProgramLeavesTasksWithTheNewName(t *testing.T) {
	before := runnerkit.Open(t, runner.Options{})
	none := func(context.Context, string) error { return nil }
	before.Register(oldMail.Handler(none))
	testkit.NoError(t, before.Schedule(t.Context(), jobs.Schedule{Name: "digest", Cron: "@daily", Spec: oldMail.With("all")}))
	_, err := before.RunSchedule(t.Context(), "digest")
	testkit.NoError(t, err)

	after := runnerkit.OpenAt(t, before.Path(), runner.Options{})
	after.Register(newMail.Handler(none).Alias("email.send"))
	testkit.NoError(t, after.Schedule(t.Context(), jobs.Schedule{Name: "digest", Cron: "@daily", Spec: newMail.With("all")}))
	_, err = after.RunSchedule(t.Context(), "digest")
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
	for task, err := range r.All(t.Context(), jobs.Filter{}, runner.Page{}) {
		testkit.NoError(t, err)
		list = append(list, task.Job+" "+string(task.State))
	}
	slices.Sort(list)
	return list
}

// A program has renamed the job email.send to mail.send. It still runs the tasks that were stored under the old name.
func ExampleRunner_Register_alias() {
	ctx := context.Background()
	r, remove := temp()
	defer remove()
	r.Register(newMail.Handler(func(ctx context.Context, to string) error {
		task, _ := runner.TaskFrom(ctx)
		fmt.Println(task.Job, to)
		return nil
	}).Alias("email.send"))
	for _, spec := range []jobs.Spec{oldMail.With("ann"), newMail.With("bob")} {
		if _, err := r.Enqueue(ctx, spec); err != nil {
			log.Fatal(err)
		}
		if err := r.WorkUntilEmpty(ctx); err != nil {
			log.Fatal(err)
		}
	}
	n, err := r.List(ctx, jobs.Filter{Jobs: []string{"email.send"}, States: jobs.Unfinished()}, runner.Page{Limit: 1})
	fmt.Println("unfinished tasks with the old name:", len(n), err)
	// Output:
	// email.send ann
	// mail.send bob
	// unfinished tasks with the old name: 0 <nil>
}
