package runner

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/runner/internal/cron"
	"example.com/runner/test/testkit"
)

func TestTickIsOnTime(t *testing.T) {
	testSchedules(t, func(c *scheduleTest) {
		c.work()
		time.Sleep(90 * time.Second) // the worker runs already when the schedules are added
		c.add(jobs.Schedule{Name: "five", Cron: "*/5 * * * *"})
		c.add(jobs.Schedule{Name: "every", Cron: "@every 90s"})
		time.Sleep(11 * time.Minute)
		c.want("ticks", c.ticked("five"), []string{"01-01 00:05:00", "01-01 00:10:00"})
		c.want("ticks", c.ticked("every")[:3], []string{"01-01 00:03:00", "01-01 00:04:30", "01-01 00:06:00"})
		for _, task := range c.tasks("five") {
			late := task.StartedAt.Sub(task.Tick)
			testkit.Between(t, "delay of the task", late, 0, 10*time.Millisecond)
			testkit.Equal(t, "state of the task", task.State, jobs.Completed)
		}
		s := c.get("five")
		c.want("next", s.NextAt, time.Date(2000, 1, 1, 0, 15, 0, 0, time.UTC))
		c.want("last", s.LastAt, time.Date(2000, 1, 1, 0, 10, 0, 0, time.UTC))
		c.want("last state", s.LastState, jobs.Completed)
	})
}

// TestTickThatMiddlewareRefusesStaysDue uses middleware that rejects the task
// of a tick for a minute. The overlap policy "replace" must not cancel the
// earlier task before the new task can be added.
func TestTickThatMiddlewareRefusesStaysDue(t *testing.T) {
	testSchedules(t, func(c *scheduleTest) {
		var refused atomic.Int64
		c.r.UseEnqueue(func(_ context.Context, spec *jobs.Spec) error {
			if spec.Schedule != "five" || spec.Tick.IsZero() {
				t.Errorf("got a Spec of schedule %q and tick %v, want five and a tick", spec.Schedule, spec.Tick)
			}
			if at := now(); at.Minute() == 10 {
				refused.Add(1)
				return errors.New("the key server is down")
			}
			spec.Metadata["tick"] = spec.Tick.UTC().Format("15:04")
			return nil
		})
		c.hold.Store(int64(time.Hour))
		c.add(jobs.Schedule{Name: "five", Cron: "*/5 * * * *", Overlap: jobs.OverlapReplace})
		c.work()
		time.Sleep(10*time.Minute + 30*time.Second)
		c.want("ticks while it refuses", c.ticked("five"), []string{"01-01 00:05:00"})
		c.want("state of the earlier task", c.tasks("five")[0].State, jobs.Running)
		testkit.Between(t, "calls in 30 s", int(refused.Load()), 25, 31)
		time.Sleep(time.Minute)
		c.want("ticks", c.ticked("five"), []string{"01-01 00:05:00", "01-01 00:10:00"})
		for _, task := range c.tasks("five") {
			c.want("metadata", task.Metadata["tick"], task.Tick.UTC().Format("15:04"))
		}
	})
}

func TestMissedTicksAreCaughtUpByTheirPolicy(t *testing.T) {
	minutes := func(from, n int) (list []string) {
		for i := range n {
			list = append(list, time.Date(2000, 1, 15, 0, from+i, 0, 0, time.UTC).Format("01-02 15:04:05"))
		}
		return list
	}
	testSchedules(t, func(c *scheduleTest) {
		c.add(jobs.Schedule{Name: "one", Cron: "* * * * *"})
		c.add(jobs.Schedule{Name: "skip", Cron: "* * * * *", CatchUp: jobs.CatchUpSkip})
		c.add(jobs.Schedule{Name: "all", Cron: "* * * * *", CatchUp: jobs.CatchUpAll})
		c.add(jobs.Schedule{Name: "window", Cron: "* * * * *", CatchUp: jobs.CatchUpAll, CatchUpWindow: 149 * time.Second})
		c.add(jobs.Schedule{Name: "rare", Cron: "0 12 * * *", CatchUp: jobs.CatchUpSkip})
		c.add(jobs.Schedule{Name: "stale", Cron: "0 12 * * *", Spec: jobs.Define[struct{}]("note").With(struct{}{},
			jobs.ExpiresIn(time.Hour))})
		c.work()
		synctest.Wait()
		c.restartAfter(14*24*time.Hour + 30*time.Second) // the next worker starts 30 s after a tick
		c.want("one: the last tick", c.ticked("one"), minutes(0, 1))
		c.want("skip: a tick half a minute ago was not missed", c.ticked("skip"), minutes(0, 1))
		c.want("all: the last hundred", c.ticked("all"), minutes(-99, 100))
		// CatchUpWindow lets the schedule catch up on the ticks of the last 149
		// s: 23:59 and 00:00.
		c.want("all within a window", c.ticked("window"), minutes(-1, 2))
		c.want("skip: one of yesterday was", c.ticked("rare"), []string(nil))
		stale := c.tasks("stale")
		testkit.Len(t, "tasks of the schedule stale", stale, 1)
		testkit.Equal(t, "state of the expired tick", stale[0].State, jobs.Cancelled)
		testkit.Equal(t, "reason of the expired tick", stale[0].Reason, jobs.ReasonExpired)
		if !stale[0].RunAt.Equal(stale[0].Tick) {
			t.Errorf("got due time %v of the expired tick, want the tick %v", stale[0].RunAt, stale[0].Tick)
		}
		c.restartAfter(10 * time.Second) // the restart must not repeat a tick
		c.want("after a restart", len(c.tasks("one"))+len(c.tasks("all")), 101)
		time.Sleep(30 * time.Second)
		c.want("and on", c.ticked("one"), append(minutes(0, 1), minutes(1, 1)...))
	})
}

func TestMissedTickSurvivesNewTimes(t *testing.T) {
	testSchedules(t, func(c *scheduleTest) {
		names := []string{"earlier", "later", "skip", "all"}
		for _, name := range names {
			c.add(jobs.Schedule{Name: name, Cron: "0 3 * * *"})
		}
		c.close()
		time.Sleep(58 * time.Hour) // 2000-01-03 10:00
		c.open()
		c.add(jobs.Schedule{Name: "earlier", Cron: "0 4 * * *"})
		c.add(jobs.Schedule{Name: "later", Cron: "0 2 3 2 *"})
		c.add(jobs.Schedule{Name: "skip", Cron: "0 4 * * *", CatchUp: jobs.CatchUpSkip})
		c.add(jobs.Schedule{Name: "all", Cron: "0 2 3 2 *", CatchUp: jobs.CatchUpAll, CatchUpWindow: 72 * time.Hour})
		c.work()
		synctest.Wait()
		c.want("new times with a tick since then", c.ticked("earlier"), []string{"01-03 04:00:00"})
		c.want("new times without one", c.ticked("later"), []string{"01-01 03:00:00"})
		c.want("skip", c.ticked("skip"), []string(nil))
		c.want("all, without a tick of the new times", c.ticked("all"), []string{"01-01 03:00:00"})
		c.want("next", c.get("later").NextAt, time.Date(2000, 2, 3, 2, 0, 0, 0, time.UTC))
	})
}

func TestOverlap(t *testing.T) {
	testSchedules(t, func(c *scheduleTest) {
		c.hold.Store(int64(150 * time.Second))
		for _, overlap := range []jobs.Overlap{jobs.OverlapSkip, jobs.OverlapAllow, jobs.OverlapReplace} {
			c.add(jobs.Schedule{Name: string(overlap), Cron: "* * * * *", Overlap: overlap})
		}
		c.work()
		time.Sleep(4*time.Minute + 30*time.Second) // the ticks of minutes 1, 2, 3 and 4 are in this time
		c.want("skip", c.ticked("skip"), []string{"01-01 00:01:00", "01-01 00:04:00"})
		c.want("skipped", c.get("skip").Skipped, 2)
		c.want("allow", len(c.tasks("allow")), 4)
		replaced := c.tasks("replace")
		c.want("replace", len(replaced), 4)
		for i, task := range replaced {
			switch {
			case i == len(replaced)-1 && task.State != jobs.Running, i < len(replaced)-1 && task.State != jobs.Cancelled:
				t.Errorf("task %d: got %s (%s), want the last task running and all others cancelled", task.ID, task.State, task.Error)
			case i > 0 && task.StartedAt.Before(replaced[i-1].FinishedAt):
				t.Errorf("task %d: got a start at %v, want one after the end of the replaced task at %v", task.ID, task.StartedAt,
					replaced[i-1].FinishedAt)
			}
		}
		c.want("why", replaced[0].Error, "replaced by the next run of schedule replace")
	})
}

// TestOverlapCountsRetriedTasks checks that the overlap policy also counts a
// finished task that was retried. It also removes the schedule and adds it
// again: an unfinished task of the removed schedule counts, and a task without
// a schedule does not.
func TestOverlapCountsRetriedTasks(t *testing.T) {
	testSchedules(t, func(c *scheduleTest) {
		c.add(jobs.Schedule{Name: "s", Cron: "* * * * *"})
		c.work()
		time.Sleep(90 * time.Second) // the task of the tick at 00:01 completes in this time
		c.hold.Store(int64(70 * time.Second))
		if _, err := c.r.Retry(c.Context(), []int64{c.tasks("s")[0].ID}, RetryOptions{}); err != nil { // it runs until 00:02:40
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		c.want("skipped while the retried task runs", c.get("s").Skipped, 1)
		c.want("tasks", len(c.tasks("s")), 1)
		if err := c.r.RemoveSchedule(c.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		c.hold.Store(int64(10 * time.Minute))
		// this task belongs to no schedule, so it must not keep the schedule
		// from enqueueing
		if _, err := c.r.Enqueue(c.Context(), jobs.Define[struct{}]("note").With(struct{}{})); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Second) // the retried task ends during this sleep
		c.add(jobs.Schedule{Name: "s", Cron: "* * * * *"})
		time.Sleep(time.Minute) // wait until after the tick at 00:03
		c.want("a new tick", c.ticked("s"), []string{"01-01 00:01:00", "01-01 00:03:00"})
		if err := c.r.RemoveSchedule(c.Context(), "s"); err != nil {
			t.Fatal(err)
		}
		c.add(jobs.Schedule{Name: "s", Cron: "* * * * *"}) // the task of the tick at 00:03 still runs
		time.Sleep(2 * time.Minute)
		c.want("skipped because of a task of before", c.get("s").Skipped, 2)
	})
}

func TestPausedScheduleNeitherTicksNorCatchesUp(t *testing.T) {
	testSchedules(t, func(c *scheduleTest) {
		c.add(jobs.Schedule{Name: "s", Cron: "0 * * * *", CatchUp: jobs.CatchUpAll})
		c.work()
		time.Sleep(90 * time.Minute)
		for range 2 { // the second call of PauseSchedule changes nothing
			found, err := c.r.store.PauseSchedule(c.Context(), "s", "ann", now())
			testkit.NoError(t, err)
			testkit.Equal(t, "found", found, true)
		}
		s := c.get("s")
		testkit.Equal(t, "the schedule is not paused", s.PausedAt.IsZero(), false)
		testkit.Equal(t, "the paused schedule has no next tick", s.NextAt.IsZero(), true)
		time.Sleep(2 * time.Hour)
		c.restartAfter(2 * time.Hour)
		task, err := c.r.runSchedule(c.Context(), "s") // RunSchedule works for a paused schedule, too
		testkit.NoError(t, err)
		testkit.Equal(t, "schedule", task.Schedule, "s")
		testkit.Equal(t, "the manual run has no tick", task.Tick.IsZero(), true)
		c.add(jobs.Schedule{Name: "s", Cron: "0 * * * *", Jitter: time.Second}) // a new definition does not resume the schedule
		expression, err := cron.Parse("0 * * * *", "UTC")
		testkit.NoError(t, err)
		at := now()
		_, err = c.r.store.ResumeSchedule(c.Context(), "s", func(jobs.Schedule) time.Time { return expression.Next(at) }, at)
		testkit.NoError(t, err)
		time.Sleep(time.Hour)
		c.want("ticks", c.ticked("s"), []string{"01-01 01:00:00", "by hand", "01-01 06:00:00"})
	})
}

// TestScheduleRecoversFromClockThatWasAhead begins with a schedule whose next
// tick lies years ahead, because a wrong clock has computed it.
func TestScheduleRecoversFromClockThatWasAhead(t *testing.T) {
	testSchedules(t, func(c *scheduleTest) {
		c.add(jobs.Schedule{Name: "cron", Cron: "0 * * * *"})
		c.add(jobs.Schedule{Name: "every", Cron: "@every 1h"})
		c.work()
		time.Sleep(61 * time.Minute)
		c.stop()
		// The test moves the next tick years ahead, as a wrong clock would do.
		// Then it handles ticks at 00:59 on 2000-01-01, as if the clock had
		// been corrected.
		future := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		_, err := c.r.store.Tick(c.Context(), now(), true, func(jobs.Schedule) ([]time.Time, time.Time, error) {
			return nil, future, nil
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.want("ahead", c.get("cron").NextAt, future)
		past := time.Date(2000, 1, 1, 0, 59, 0, 0, time.UTC)
		if _, err := c.r.store.Tick(c.Context(), past, true,
			func(s jobs.Schedule) ([]time.Time, time.Time, error) { return cron.Due(s, past) }, nil); err != nil {
			t.Fatal(err)
		}
		c.want("set back over a tick", c.get("cron").NextAt, time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC))
		c.work()
		synctest.Wait()
		c.want("the tick has its task", c.ticked("cron"), []string{"01-01 01:00:00"})
		time.Sleep(time.Hour)
		c.want("and it goes on", c.ticked("cron"), []string{"01-01 01:00:00", "01-01 02:00:00"})
		c.want("every", len(c.ticked("every")), 2)
	})
}

// TestRunningWorkerCorrectsTickThatIsYearsAhead moves the next tick of a
// schedule years ahead, like another process whose clock is wrong.
func TestRunningWorkerCorrectsTickThatIsYearsAhead(t *testing.T) {
	testSchedules(t, func(c *scheduleTest) {
		c.add(jobs.Schedule{Name: "s", Cron: "*/10 * * * *"})
		c.work()
		time.Sleep(15 * time.Minute)
		future := time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC)
		_, err := c.r.store.Tick(c.Context(), now(), true, func(jobs.Schedule) ([]time.Time, time.Time, error) {
			return nil, future, nil
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		c.want("ticks", c.ticked("s"), []string{"01-01 00:10:00", "01-01 01:10:00"})
	})
}

// TestNextWorkerSetsMissingNextTick starts with a schedule that has no next
// tick. This happens if a wrong clock shows the last year of the calendar: the
// schedule then has no later tick.
func TestNextWorkerSetsMissingNextTick(t *testing.T) {
	testSchedules(t, func(c *scheduleTest) {
		c.add(jobs.Schedule{Name: "s", Cron: "*/10 * * * *"})
		_, err := c.r.store.Tick(c.Context(), now(), true, func(jobs.Schedule) ([]time.Time, time.Time, error) {
			return nil, time.Time{}, nil
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		c.work()
		time.Sleep(15 * time.Minute)
		c.want("ticks", c.ticked("s"), []string{"01-01 00:10:00"})
	})
}

// TestRetryOfClockThatWasAheadStartsAfterItsDelay checks a retry whose start
// time was written by a clock that was years ahead. The retry must start after
// its delay, and not years later.
func TestRetryOfClockThatWasAheadStartsAfterItsDelay(t *testing.T) {
	onFakeTime(t, WorkOptions{}, nil, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("x"))
		ahead := now().AddDate(4, 0, 0)
		before, err := f.store.Register(f.Context(), db.WorkerInfo{ID: db.NewWorkerID(), StartedAt: ahead},
			[]db.ClaimJob{{Job: "work", MaxAttempts: 3}})
		if err != nil {
			f.Fatal(err)
		}
		turned, err := before.Cycle(f.Context(), db.Cycle{Now: ahead, Look: true, Claim: db.Claim{Free: 1, Lease: time.Minute}})
		testkit.NoError(f.T, err)
		testkit.Len(f.T, "claimed tasks", turned.Claimed, 1)
		o := taskspec.Outcome{Reason: jobs.ReasonError, Error: "x", Started: ahead, Finished: ahead}
		if _, err := before.Cycle(f.Context(), db.Cycle{Now: ahead,
			Finish: []db.Finish{{Task: turned.Claimed[0], Outcome: o}}}); err != nil {
			f.Fatal(err)
		}
		if err := before.End(f.Context(), ahead); err != nil {
			f.Fatal(err)
		}
		f.want(id, jobs.Retrying, jobs.ReasonError)
		f.work(5 * time.Minute)
		f.want(id, jobs.Completed, "")
	})
}

// TestLateWorkerDoesNotMoveHandledTick checks that cron.Due keeps a next tick
// that is later than the time that the worker has read from its clock. Another
// worker sets such a next tick if it handles a tick after this worker has read
// its clock.
func TestLateWorkerDoesNotMoveHandledTick(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 900e6, time.UTC)
	for _, next := range []time.Duration{time.Second, 2 * time.Second, 30 * time.Second} {
		s := jobs.Schedule{Name: "s", Cron: "@every 1s", Zone: "UTC", NextAt: now.Truncate(time.Second).Add(next)}
		due, at, err := cron.Due(s, now)
		testkit.Len(t, "due ticks", due, 0)
		testkit.NoError(t, err)
		if !at.Equal(s.NextAt) {
			t.Errorf("next tick %v ahead: got next tick %v, want %v", next, at, s.NextAt)
		}
	}
}

func TestJitterStaysWithinItsBounds(t *testing.T) {
	testSchedules(t, func(c *scheduleTest) {
		c.add(jobs.Schedule{Name: "s", Cron: "*/10 * * * *", Jitter: 5 * time.Minute, Overlap: jobs.OverlapAllow})
		c.work()
		time.Sleep(4 * time.Hour)
		var delays []time.Duration
		for _, task := range c.tasks("s") {
			d := task.RunAt.Sub(task.Tick)
			if d < 0 || d >= 5*time.Minute || task.StartedAt.Before(task.RunAt) {
				t.Errorf("task %d: got tick %v, due %v, start %v; want it due less than 5m after the tick, and a start after that",
					task.ID, task.Tick, task.RunAt, task.StartedAt)
			}
			delays = append(delays, d)
		}
		slices.Sort(delays)
		if n := len(slices.Compact(delays)); n < 20 {
			t.Errorf("got %d different delays of %d ticks, want at least 20", n, len(delays))
		}
	})
}
