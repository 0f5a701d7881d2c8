package runner_test

import (
	"errors"
	"testing"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// TestApplySchedulesReportsEveryInvalidDefinition checks that one call returns
// the errors of all definitions. A user who imports many definitions can then
// correct all errors at once.
func TestApplySchedulesReportsEveryInvalidDefinition(t *testing.T) {
	r := runnerkit.Open(t, runner.Options{})
	schedule := func(name, expression string) jobs.Schedule {
		return jobs.Schedule{Name: name, Cron: expression, Spec: jobs.Command(command.Command{Argv: []string{"true"}})}
	}
	indexes := func(err error) (list []int) {
		t.Helper()
		joined, ok := err.(interface{ Unwrap() []error })
		if !ok {
			t.Fatalf("got error %v, want joined errors", err)
		}
		for _, err := range joined.Unwrap() {
			bad, ok := errors.AsType[*runner.SpecError](err)
			if !ok {
				t.Fatalf("got error %v, want a SpecError", err)
			}
			list = append(list, bad.Index)
		}
		return list
	}
	_, err := admin.ApplySchedules(t.Context(), r, []jobs.Schedule{schedule("a", "@hourly"), schedule("b", "* * * * 9"),
		schedule("a", "@daily"), schedule("c", "60 * * * *"), schedule("b", "@daily")}, admin.ApplyOptions{})
	testkit.Equal(t, "invalid definitions", indexes(err), []int{1, 2, 3})
	list := []jobs.Schedule{schedule("a", "@hourly"), schedule("b", "@hourly"), schedule("c", "@hourly")}
	_, err = admin.ApplySchedules(t.Context(), r, list, admin.ApplyOptions{})
	testkit.NoError(t, err)
	list[0].Cron, list[2].Cron = "@daily", "@daily"
	_, err = admin.ApplySchedules(t.Context(), r, list, admin.ApplyOptions{Keep: true})
	testkit.Equal(t, "definitions that differ", indexes(err), []int{0, 2})
}
