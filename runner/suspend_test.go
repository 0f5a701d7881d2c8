package runner

import (
	"context"
	"testing"
	"time"

	"example.com/runner/db/dbtest"
	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

// While a laptop is suspended, no process runs. After the resume, the wall
// clock has advanced, but timers have not. For a worker this looks the same as
// if all times in its file had moved back. So the tests in this file move the
// times in the file while the worker runs.

const asleep = 8 * time.Hour

// suspend simulates a machine that is suspended for a night.
func (f *fakeTimeTest) suspend() {
	f.Helper()
	raw := dbtest.Raw(f.T, f.store.Path())
	defer raw.Close()
	for _, text := range []string{`UPDATE tasks SET run_at = run_at - ?1, created_at = created_at - ?1, started_at = started_at - ?1,
			finished_at = finished_at - ?1, lease_expires_at = lease_expires_at - ?1, updated_at = updated_at - ?1`,
		`UPDATE workers SET beat_at = beat_at - ?1, started_at = started_at - ?1`,
		`UPDATE schedules SET next_at = next_at - ?1`} {
		if _, err := raw.Exec(text, asleep.Milliseconds()); err != nil {
			f.Error(err)
		}
	}
}

func TestWorkerContinuesAfterMachineWasSuspended(t *testing.T) {
	slow := func(ctx context.Context, f *fakeTimeTest, in string) (string, error) {
		if in == "slow" {
			select {
			case <-time.After(10 * time.Minute):
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}
		return in, nil
	}
	onFakeTime(t, WorkOptions{Concurrency: 2}, slow, func(f *fakeTimeTest) {
		runs := f.enqueue(work.With("slow", jobs.Timeout(time.Hour)))
		due := f.enqueue(work.With("due", jobs.In(2*time.Hour)))
		later := f.enqueue(work.With("later", jobs.In(asleep+5*time.Minute)))
		if err := f.SetSchedule(f.Context(), jobs.Schedule{Name: "hourly", Cron: "0 * * * *", Zone: "UTC",
			Spec: work.With("tick")}); err != nil {
			f.Fatal(err)
		}
		const lid = 3*time.Minute + time.Second // the laptop is suspended at this time, which is between two heartbeats
		f.after(lid, f.suspend)
		f.work(15 * time.Minute)

		got := f.want(runs, jobs.Completed, "")
		testkit.Equal(t, "losses of the running task", got.Losses, 0)
		testkit.Equal(t, "attempt of the running task", got.Attempt, 1)
		f.want(due, jobs.Completed, "")
		f.want(later, jobs.Completed, "")
		ticks, err := f.List(f.Context(), jobs.Filter{Schedule: "hourly"})
		testkit.NoError(t, err)
		testkit.Len(t, "tasks for the eight missed ticks", ticks, 1)
		for _, run := range f.runs {
			switch {
			case run.task.ID == due || run.task.Schedule != "":
				late := run.at - lid
				testkit.Between(t, "delay of a task that was due during the suspension", late, 0, f.options.Lease/6+time.Second)
			case run.task.ID == later:
				if want := 5 * time.Minute; run.at < want || run.at > want+10*time.Millisecond {
					t.Errorf("what is due after the night starts at %v, want %v", run.at, want)
				}
			}
		}
	})
}
