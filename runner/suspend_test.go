package runner

import (
	"context"
	"testing"
	"time"

	"example.com/runner/db/dbtest"
	"example.com/runner/jobs"
)

// While a laptop is suspended, no process runs. When it resumes, the wall clock has moved but timers have not. A worker sees the same if
// all times in its file move back. So the tests in this file change the times in the file while the worker runs.

const asleep = 8 * time.Hour

// suspend suspends the machine for a night.
func (b *bubble) suspend() {
	b.Helper()
	raw := dbtest.Raw(b.T, b.Path())
	defer raw.Close()
	for _, text := range []string{`UPDATE tasks SET run_at = run_at - ?1, created_at = created_at - ?1, started_at = started_at - ?1,
			finished_at = finished_at - ?1, lease_expires_at = lease_expires_at - ?1, updated_at = updated_at - ?1`,
		`UPDATE workers SET beat_at = beat_at - ?1, started_at = started_at - ?1`,
		`UPDATE schedules SET next_at = next_at - ?1`} {
		if _, err := raw.Exec(text, asleep.Milliseconds()); err != nil {
			b.Error(err)
		}
	}
}

func TestAWorkerGoesOnWhenItsMachineWasAsleep(t *testing.T) {
	slow := func(ctx context.Context, b *bubble, in string) (string, error) {
		if in == "slow" {
			select {
			case <-time.After(10 * time.Minute):
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}
		return in, nil
	}
	fake(t, Options{Concurrency: 2}, slow, func(b *bubble) {
		runs := b.enqueue(work.With("slow", jobs.Timeout(time.Hour)))
		due := b.enqueue(work.With("due", jobs.In(2*time.Hour)))
		later := b.enqueue(work.With("later", jobs.In(asleep+5*time.Minute)))
		if err := b.Schedule(b.Context(), jobs.Schedule{Name: "hourly", Cron: "0 * * * *", Zone: "UTC",
			Spec: work.With("tick")}); err != nil {
			b.Fatal(err)
		}
		const lid = 3*time.Minute + time.Second // ends at a time at which no heartbeat writes
		b.within(lid, b.suspend)
		b.work(15 * time.Minute)

		if got := b.want(runs, jobs.Completed, ""); got.Losses != 0 || got.Attempt != 1 {
			t.Errorf("what ran was disturbed: %d losses, attempt %d", got.Losses, got.Attempt)
		}
		b.want(due, jobs.Completed, "")
		b.want(later, jobs.Completed, "")
		ticks, err := b.List(b.Context(), jobs.Filter{Schedule: "hourly"}, Page{})
		if err != nil || len(ticks) != 1 {
			t.Errorf("%d tasks for eight ticks that were missed: %v", len(ticks), err)
		}
		for _, run := range b.runs {
			switch {
			case run.task.ID == due || run.task.Schedule != "":
				if late := run.at - lid; late < 0 || late > b.options.Lease/6+time.Second {
					t.Errorf("what was due in the night (%s) starts %v after the machine woke", run.task.Args, late)
				}
			case run.task.ID == later:
				if want := 5 * time.Minute; run.at < want || run.at > want+10*time.Millisecond {
					t.Errorf("what is due after the night starts at %v, want %v", run.at, want)
				}
			}
		}
	})
}
