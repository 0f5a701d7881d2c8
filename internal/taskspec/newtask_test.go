package taskspec

import (
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/test/testkit"
)

func TestTaskIsScheduledOnlyIfItStartsLater(t *testing.T) {
	for name, c := range map[string]struct {
		option jobs.Option
		state  jobs.State
		due    time.Time
	}{
		"now":      {jobs.In(0), jobs.Pending, at},
		"later":    {jobs.In(time.Hour), jobs.Scheduled, at.Add(time.Hour)},
		"at":       {jobs.At(at.Add(time.Minute)), jobs.Scheduled, at.Add(time.Minute)},
		"the past": {jobs.At(at.Add(-time.Minute)), jobs.Pending, at},
	} {
		s := jobs.Command(command.Command{Argv: []string{"true"}}, c.option, jobs.ExpiresIn(time.Second))
		task := NewTask(&s, at)
		if task.State != c.state || !task.RunAt.Equal(c.due) || !task.ExpiresAt.Equal(c.due.Add(time.Second)) || task.GenerationID != 1 {
			t.Errorf("%s: got %s, run_at %v, expires_at %v, generation %d; want %s, %v, %v, 1",
				name, task.State, task.RunAt, task.ExpiresAt, task.GenerationID, c.state, c.due, c.due.Add(time.Second))
		}
	}
	s := jobs.Command(command.Command{Argv: []string{"true"}})
	testkit.Equal(t, "expires_at of a task without an expiry", NewTask(&s, at).ExpiresAt, time.Time{})
}
