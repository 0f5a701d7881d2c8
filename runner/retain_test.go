package runner

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

func TestOldTasksAreDeleted(t *testing.T) {
	fail := func(_ context.Context, _ *fakeTimeTest, in string) (string, error) {
		if in == "fails" {
			return "", errors.New("no")
		}
		return in, nil
	}
	onFakeTime(t, WorkOptions{Keep: time.Hour, KeepFailed: 3 * time.Hour}, fail, func(f *fakeTimeTest) {
		good, bad := f.enqueue(work.With("x")), f.enqueue(work.With("fails", jobs.MaxAttempts(1)))
		late := f.enqueue(work.With("x", jobs.In(4*time.Hour)))
		there := func(at time.Duration, want ...int64) {
			f.after(at, func() {
				tasks, err := f.List(f.Context(), jobs.Filter{OldestFirst: true})
				if err != nil || len(tasks) != len(want) {
					f.Errorf("after %v got %d tasks (%v), want tasks %v", at, len(tasks), err, want)
					return
				}
				for i := range want {
					if tasks[i].ID != want[i] {
						f.Errorf("after %v got task %d, want tasks %v", at, tasks[i].ID, want)
					}
				}
			})
		}
		there(59*time.Minute, good, bad, late)
		there(62*time.Minute, bad, late)
		there(179*time.Minute, bad, late)
		there(182*time.Minute, late)
		f.work(4*time.Hour + 30*time.Minute)
		f.want(late, jobs.Completed, "")
	})
}

// The retention of a job is stored with its tasks, so workers that don't have
// the job respect it, too.
func TestJobHasRetentionOfItsOwn(t *testing.T) {
	fail := func(_ context.Context, _ *fakeTimeTest, in string) (string, error) {
		if in == "fails" {
			return "", errors.New("no")
		}
		return in, nil
	}
	onFakeTime(t, WorkOptions{Keep: time.Hour, KeepFailed: time.Hour}, fail, func(f *fakeTimeTest) {
		short, long := jobs.KeepFor(20*time.Minute), jobs.KeepFor(3*time.Hour)
		f.enqueue(work.With("x", short))
		f.enqueue(work.With("fails", short, jobs.MaxAttempts(1)))
		f.enqueue(work.With("x"))
		f.enqueue(work.With("x", long))
		f.enqueue(work.With("fails", long, jobs.MaxAttempts(1)))
		for at, want := range map[time.Duration]int{19 * time.Minute: 5, 22 * time.Minute: 3, 59 * time.Minute: 3, 62 * time.Minute: 2,
			179 * time.Minute: 2, 182 * time.Minute: 0} {
			f.after(at, func() {
				tasks, err := f.List(f.Context(), jobs.Filter{})
				if err != nil || len(tasks) != want {
					f.Errorf("after %v got %d tasks (%v), want %d", at, len(tasks), err, want)
				}
			})
		}
		f.work(4 * time.Hour)
	})
}

func TestNegativeTimesKeepTasksForever(t *testing.T) {
	for _, test := range []struct {
		keep, keepFailed time.Duration
		left             jobs.State
	}{{-1, time.Hour, jobs.Completed}, {time.Hour, -1, jobs.Failed}} {
		fail := func(_ context.Context, _ *fakeTimeTest, in string) (string, error) {
			if in == "fails" {
				return "", errors.New("no")
			}
			return in, nil
		}
		onFakeTime(t, WorkOptions{Keep: test.keep, KeepFailed: test.keepFailed, Lease: time.Hour}, fail, func(f *fakeTimeTest) {
			f.enqueue(work.With("x"))
			f.enqueue(work.With("fails", jobs.MaxAttempts(1)))
			f.work(2 * time.Hour)
			tasks, err := f.List(f.Context(), jobs.Filter{})
			testkit.NoError(f.T, err)
			testkit.Len(f.T, "tasks", tasks, 1)
			testkit.Equal(f.T, "state", tasks[0].State, test.left)
		})
	}
}

// TestHistoryRemainsAfterTasksAreDeleted checks that the counts of ended tasks
// outlive the tasks.
func TestHistoryRemainsAfterTasksAreDeleted(t *testing.T) {
	onFakeTime(t, WorkOptions{Keep: time.Hour, Lease: time.Hour}, nil, func(f *fakeTimeTest) {
		const days = 5
		for day := range days {
			f.enqueue(work.With("x", jobs.In(time.Duration(day)*24*time.Hour)))
		}
		f.work(days * 24 * time.Hour)
		ended, err := f.store.Throughput(f.Context(), f.began.Truncate(time.Hour), 24*time.Hour, days)
		testkit.NoError(f.T, err)
		for day, counts := range ended {
			testkit.Equal(f.T, fmt.Sprint("tasks of day ", day), counts, map[jobs.State]int{jobs.Completed: 1})
		}
		tasks, err := f.List(f.Context(), jobs.Filter{})
		testkit.NoError(f.T, err)
		testkit.Len(f.T, "tasks", tasks, 0)
	})
}

func TestTasksAreKeptForWeekAndFailedOnesForMonthByDefault(t *testing.T) {
	if o := (WorkOptions{}).withDefaults(SyncFull); o.Keep != 7*24*time.Hour || o.KeepFailed != 30*24*time.Hour {
		t.Errorf("got %v and %v, want 7 and 30 days", o.Keep, o.KeepFailed)
	}
	if o := (WorkOptions{Keep: -1, KeepFailed: -1}).withDefaults(SyncFull); o.Keep >= 0 || o.KeepFailed >= 0 {
		t.Errorf("got %v and %v, want negative times, which keep forever", o.Keep, o.KeepFailed)
	}
}
