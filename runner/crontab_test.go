package runner

import (
	"context"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner/internal/cron/crontest"
	"example.com/runner/test/testkit"
)

// ImportCrontab reads a crontab as schedules, as runner schedule import does.
// The tests of package runner_test set it, because package input imports this
// one.
var ImportCrontab func(text string) ([]jobs.Schedule, error)

// spelledOut maps nicknames such as @hourly to five fields, because package
// crontest doesn't know nicknames.
var spelledOut = map[string]string{"@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *"}

func doNothing(context.Context, jobs.Task) (json.RawMessage, error) { return nil, nil }

// TestCrontabOverClockChangesAndOutage imports a crontab and lets five days
// pass (eleven in the full suite), in which the clocks of two zones (three)
// change, and no worker runs for a day (three). The test compares every tick
// with the results of package crontest.
func TestCrontabOverClockChangesAndOutage(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../testdata/crontab")
	if err != nil {
		t.Fatal(err)
	}
	schedules, err := ImportCrontab(string(text))
	testkit.NoError(t, err)
	testkit.Len(t, "entries", schedules, 20)
	testSchedules(t, func(c *scheduleTest) {
		command := jobs.Handler{Job: command.Job, MaxAttempts: 1, Run: doNothing}
		// The clocks change on March 26 in Berlin and on Lord Howe, and on
		// April 2 in New York.
		from := time.Date(2000, 3, 24, 10, 2, 30, 0, time.UTC)
		day := func(small, large int) time.Time { return from.AddDate(0, 0, testkit.Size(small, large)) }
		offAt := day(3, 4).Truncate(time.Hour).Add(12*time.Hour + time.Minute)
		onAt := day(4, 7).Truncate(time.Hour).Add(12*time.Hour + 2*time.Minute)
		to := day(5, 11)
		sleepUntil := func(at time.Time) { time.Sleep(time.Until(at)); synctest.Wait() }

		sleepUntil(from)
		if _, err := c.r.applySchedules(t.Context(), schedules, db.ApplyOptions{Keep: true}); err != nil {
			t.Fatal(err)
		}
		c.r.Register(command)
		c.work()
		sleepUntil(offAt)
		c.stop()
		if err := c.r.Close(); err != nil {
			t.Fatal(err)
		}
		sleepUntil(onAt)
		c.open()
		c.r.Register(command)
		c.work()
		sleepUntil(to)

		ticks, caughtUp := 0, 0
		for _, s := range schedules {
			want, late := wantedTicks(t, s, from, to, offAt, onAt)
			caughtUp += late
			tasks := c.tasks(s.Name)
			var got []time.Time
			for _, task := range tasks {
				got = append(got, task.Tick)
				if task.State != jobs.Completed && task.FinishedAt.IsZero() && task.Tick.Before(to.Add(-time.Hour)) {
					t.Errorf("task %d of %s: got state %s, want completed", task.ID, s.Name, task.State)
				}
			}
			if !slices.EqualFunc(got, want, time.Time.Equal) {
				t.Errorf("%s, %s in %s:\n got %v\nwant %v", s.Name, s.Cron, s.Zone, got, want)
			}
			testkit.Equal(t, "skipped ticks", c.get(s.Name).Skipped, 0)
			ticks += len(want)
		}
		wantTicks, wantLate := testkit.Size(1000, 2000), testkit.Size(14, 15)
		if ticks < wantTicks || caughtUp < wantLate {
			t.Errorf("got %d ticks, %d of them caught up; want at least %d and %d to compare", ticks, caughtUp, wantTicks, wantLate)
		}
		t.Logf("%d ticks, %d of them caught up", ticks, caughtUp)
	})
}

// wantedTicks returns the ticks between two times for which a schedule enqueues
// a task, and how many of these are late. No worker runs between offAt and
// onAt; only the last tick in that time gets a task.
func wantedTicks(t *testing.T, s jobs.Schedule, from, to, offAt, onAt time.Time) (want []time.Time, caughtUp int) {
	t.Helper()
	expr := s.Cron
	if strings.HasPrefix(expr, "@") {
		expr = spelledOut[expr]
	}
	zone, err := time.LoadLocation(s.Zone)
	if err != nil {
		t.Fatal(err)
	}
	all := crontest.Ticks(expr, zone, from.Truncate(time.Minute), to)
	for i, tick := range all {
		switch missed := !tick.Before(offAt) && tick.Before(onAt); {
		case tick.Before(from):
		case missed && i+1 < len(all) && all[i+1].Before(onAt):
		default:
			want = append(want, tick)
			if missed {
				caughtUp++
			}
		}
	}
	return want, caughtUp
}
