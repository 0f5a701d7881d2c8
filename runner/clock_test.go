package runner

import (
	"testing"
	"time"

	"example.com/runner/jobs"
)

// taskCount returns the number of tasks in the database.
func (f *fakeTimeTest) taskCount() int {
	f.Helper()
	tasks, err := f.List(f.Context(), jobs.Filter{})
	if err != nil {
		f.Fatal(err)
	}
	return len(tasks)
}

// TestWorkerThatStartsDaysLaterDeletesNothingForHour starts a worker a day
// after the last heartbeat of any worker. The new worker cannot know whether
// the machine was off or whether its clock is wrong, so it waits before it
// deletes old tasks.
func TestWorkerThatStartsDaysLaterDeletesNothingForHour(t *testing.T) {
	onFakeTime(t, WorkOptions{Keep: time.Hour}, nil, func(f *fakeTimeTest) {
		f.enqueue(work.With("x"))
		f.work(time.Minute)
		time.Sleep(25 * time.Hour)
		// The hour without deletions has begun with the first run. The restart
		// before the second run does not begin another hour.
		for range 2 {
			f.work(20 * time.Minute)
			if got := f.taskCount(); got != 1 {
				t.Errorf("after %v got %d tasks, want the one that completed", time.Since(f.began), got)
			}
		}
		f.work(30 * time.Minute)
		if got := f.taskCount(); got != 0 {
			t.Errorf("after %v got %d tasks, want none: an hour has passed", time.Since(f.began), got)
		}
	})
}

// TestWorkerThatRunsWeeklyDeletesOneWeekLater runs a worker for some minutes
// every week. Each run deletes the tasks that were already old enough at the
// previous run.
func TestWorkerThatRunsWeeklyDeletesOneWeekLater(t *testing.T) {
	onFakeTime(t, WorkOptions{Keep: time.Hour}, nil, func(f *fakeTimeTest) {
		for week, want := range []int{1, 2, 2, 2} {
			f.enqueue(work.With("x"))
			f.work(5 * time.Minute)
			if got := f.taskCount(); got != want {
				t.Errorf("in week %d got %d tasks, want %d", week, got, want)
			}
			time.Sleep(7 * 24 * time.Hour)
		}
	})
}
