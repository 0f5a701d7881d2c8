package admin_test

import (
	"testing"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/runnertest"
	"example.com/runner/test/testkit"
)

func TestNegativeLimitIsInvalid(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, r *runner.Runner) {
		_, err := admin.Output(t.Context(), r, admin.Attempt{TaskID: 1}, 0, -1)
		testkit.ErrorIs(t, err, jobs.ErrInvalid, "limit -1 is negative")
		_, _, err = admin.Dependencies(t.Context(), r, 1, -1)
		testkit.ErrorIs(t, err, jobs.ErrInvalid, "limit -1 is negative")
	})
}

func TestNextTicksOfScheduleWithoutZoneAreUTC(t *testing.T) {
	runnertest.Run(t, func(t *testing.T, _ *runner.Runner) {
		ticks, err := admin.NextTicks(jobs.Schedule{Cron: "@daily"}, 2)
		testkit.NoError(t, err)
		testkit.Equal(t, "ticks", len(ticks), 2)
		testkit.Equal(t, "hour of the first tick", ticks[0].UTC().Hour(), 0)
	})
}
