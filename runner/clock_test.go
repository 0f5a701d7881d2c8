package runner

import (
	"testing"
	"time"

	"example.com/runner/jobs"
)

// kept returns how many tasks the database has.
func (b *bubble) kept() int {
	b.Helper()
	tasks, err := b.List(b.Context(), jobs.Filter{}, Page{})
	if err != nil {
		b.Fatal(err)
	}
	return len(tasks)
}

// TestAWorkerThatStartsDaysLaterDeletesNothingForAnHour starts a worker a day after the last heartbeat of any worker. The worker cannot
// know whether the machine was off or the clock is wrong.
func TestAWorkerThatStartsDaysLaterDeletesNothingForAnHour(t *testing.T) {
	fake(t, Options{Keep: time.Hour}, nil, func(b *bubble) {
		b.enqueue(work.With("x"))
		b.work(time.Minute)
		time.Sleep(25 * time.Hour)
		for range 2 { // a restart within the hour changes nothing
			b.work(20 * time.Minute)
			if got := b.kept(); got != 1 {
				t.Errorf("after %v got %d tasks, want the one that completed", time.Since(b.began), got)
			}
		}
		b.work(30 * time.Minute)
		if got := b.kept(); got != 0 {
			t.Errorf("after %v got %d tasks, want none: an hour has passed", time.Since(b.began), got)
		}
	})
}

// TestAWorkerOfSomeMinutesAWeekDeletesWithAWeeksDelay runs a worker for some minutes every week. Each worker deletes the tasks that were
// old when the previous worker ran.
func TestAWorkerOfSomeMinutesAWeekDeletesWithAWeeksDelay(t *testing.T) {
	fake(t, Options{Keep: time.Hour}, nil, func(b *bubble) {
		for week, want := range []int{1, 2, 2, 2} {
			b.enqueue(work.With("x"))
			b.work(5 * time.Minute)
			if got := b.kept(); got != want {
				t.Errorf("in week %d got %d tasks, want %d", week, got, want)
			}
			time.Sleep(7 * 24 * time.Hour)
		}
	})
}
