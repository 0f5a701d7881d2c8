package runner

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
)

func TestTasksAreForgottenWhenTheyAreOld(t *testing.T) {
	fail := func(_ context.Context, _ *bubble, in string) (string, error) {
		if in == "fails" {
			return "", errors.New("no")
		}
		return in, nil
	}
	fake(t, Options{Keep: time.Hour, KeepFailed: 3 * time.Hour}, fail, func(b *bubble) {
		good, bad := b.enqueue(work.With("x")), b.enqueue(work.With("fails", jobs.MaxAttempts(1)))
		late := b.enqueue(work.With("x", jobs.In(4*time.Hour)))
		there := func(at time.Duration, want ...int64) {
			b.within(at, func() {
				tasks, err := b.List(b.Context(), jobs.Filter{}, Page{Oldest: true})
				if err != nil || len(tasks) != len(want) {
					b.Errorf("after %v there are %d tasks, want %v: %v", at, len(tasks), want, err)
					return
				}
				for i := range want {
					if tasks[i].ID != want[i] {
						b.Errorf("after %v task %d is there, want %v", at, tasks[i].ID, want)
					}
				}
			})
		}
		there(59*time.Minute, good, bad, late)
		there(62*time.Minute, bad, late)
		there(179*time.Minute, bad, late)
		there(182*time.Minute, late)
		b.work(4*time.Hour + 30*time.Minute)
		b.want(late, jobs.Completed, "")
	})
}

// TestHistoryOutlivesTasks checks that counters outlive the tasks. They count by the minute for two days, then by the hour.
func TestHistoryOutlivesTasks(t *testing.T) {
	fake(t, Options{Keep: time.Hour, Lease: time.Hour}, nil, func(b *bubble) {
		const days = 5
		for day := range days {
			b.enqueue(work.With("x", jobs.In(time.Duration(day)*24*time.Hour)))
		}
		b.work(days * 24 * time.Hour)
		history, err := b.store.History(b.Context(), b.began.Add(-time.Hour))
		if err != nil || len(history) != days {
			b.Fatalf("got %+v %v; want no error, len(history) = days", history, err)
		}
		for day, h := range history {
			want := time.Minute
			if day < days-2 {
				want = time.Hour
			}
			at := b.began.Add(time.Duration(day) * 24 * time.Hour).Truncate(want)
			if h.N != 1 || h.State != jobs.Completed || h.Span != want || !h.At.Equal(at) {
				b.Errorf("day %d: %+v, want one in %v of %v", day, h, want, at)
			}
		}
		if tasks, err := b.List(b.Context(), jobs.Filter{}, Page{}); err != nil || len(tasks) != 0 {
			b.Errorf("got %v, %v; want no error, len(tasks) = 0", len(tasks), err)
		}
	})
}

func TestFiguresOfTheLastHour(t *testing.T) {
	slow := func(_ context.Context, _ *bubble, in string) (string, error) {
		d, err := time.ParseDuration(in)
		time.Sleep(d)
		return in, err
	}
	fake(t, Options{Concurrency: 1}, slow, func(b *bubble) {
		b.enqueue(work.With("1s"))
		b.work(10 * time.Minute)
		time.Sleep(2 * time.Hour)
		for _, d := range []string{"10s", "20s", "30s", "40s"} {
			b.enqueue(work.With(d))
		}
		b.work(10 * time.Minute)
		f, err := b.QueueStats(b.Context(), "default")
		near := func(got, want time.Duration) bool { return got >= want && got < want+50*time.Millisecond }
		if err != nil || f.Tasks != 4 || f.Starts != 4 || !near(f.WaitP50, 10*time.Second) || !near(f.WaitP95, time.Minute) ||
			!near(f.RunP50, 20*time.Second) || !near(f.RunP95, 40*time.Second) {
			b.Errorf("got %+v %v; want no error, f.Tasks = 4, f.Starts = 4, near(f.WaitP50, 10*Second), near(f.WaitP95, "+
				"Minute), near(f.RunP50, 20*Second), near(f.RunP95, 40*Second)",
				f, err)
		}
		if f, err := b.QueueStats(b.Context(), "none"); err != nil || f != (QueueStats{}) {
			b.Errorf("got %+v %v; want no error, f = (QueueStats{})", f, err)
		}
	})
}

func TestRank(t *testing.T) {
	var sorted []time.Duration
	if got := db.Rank(sorted, 95); got != 0 {
		t.Errorf("got %+v, want %+v", got, 0)
	}
	for n := 1; n <= 200; n++ {
		sorted = append(sorted, time.Duration(n))
		for _, percent := range []int{50, 95} {
			got, below := db.Rank(sorted, percent), 0
			for _, d := range sorted {
				if d <= got {
					below++
				}
			}
			if below*100 < percent*n || (below-1)*100 >= percent*n {
				t.Errorf("of 1..%d, %d percent are at most %d", n, percent, got)
			}
		}
	}
}

func TestTasksAreKeptForAWeekAndFailedOnesForAMonthByDefault(t *testing.T) {
	if o := (Options{}).withDefaults(); o.Keep != 7*24*time.Hour || o.KeepFailed != 30*24*time.Hour {
		t.Errorf("got %v and %v, want 7 and 30 days", o.Keep, o.KeepFailed)
	}
	if o := (Options{Keep: -1, KeepFailed: -1}).withDefaults(); o.Keep >= 0 || o.KeepFailed >= 0 {
		t.Errorf("got %v and %v, want negative times, which keep forever", o.Keep, o.KeepFailed)
	}
}
