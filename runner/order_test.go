package runner

import (
	"context"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

func TestWorkerWakesWhenRateLimitAllowsNextStart(t *testing.T) {
	onFakeTime(t, WorkOptions{Concurrency: 4}, nil, func(f *fakeTimeTest) {
		l := db.Limit{Target: db.Target{Kind: db.JobTarget, Name: "work"}, Rate: 1, Per: time.Hour, Burst: 1}
		if err := f.store.SetLimit(f.Context(), l, now()); err != nil {
			f.Fatal(err)
		}
		for range 4 {
			f.enqueue(work.With("x"))
		}
		// The test removes the limit after two and a half hours. Tasks then
		// start without a delay.
		f.after(150*time.Minute, func() {
			if _, err := f.store.RemoveLimit(f.Context(), l.Target, now()); err != nil {
				f.Error(err)
			}
			f.store.Notify()
		})
		f.work(3 * time.Hour)
		f.wantRuns(0, time.Hour, 2*time.Hour, 150*time.Minute)
	})
}

func TestWorkerWakesWhenRateLimitOfLaneAllowsNextStart(t *testing.T) {
	onFakeTime(t, WorkOptions{}, nil, func(f *fakeTimeTest) {
		l := db.Limit{Target: db.Target{Kind: db.LaneTarget, Name: "l"}, Rate: 1, Per: time.Hour, Burst: 1}
		if err := f.store.SetLimit(f.Context(), l, now()); err != nil {
			f.Fatal(err)
		}
		for range 3 {
			f.enqueue(work.With("x", jobs.Lane("l")))
		}
		// Work with UntilEmpty waits for these tasks although they need hours,
		// because they are already due
		if err := f.Work(f.Context(), WorkOptions{Concurrency: 4, UntilEmpty: true}); err != nil {
			f.Fatal(err)
		}
		f.wantRuns(0, time.Hour, 2*time.Hour)
	})
}

func TestReleasedTasksRunAtOnce(t *testing.T) {
	onFakeTime(t, WorkOptions{Concurrency: 4}, func(context.Context, *fakeTimeTest, string) (string, error) {
		time.Sleep(time.Minute)
		return "x", nil
	}, func(f *fakeTimeTest) {
		first := f.enqueue(work.With("a", jobs.Lane("l")))
		f.enqueue(work.With("b", jobs.Lane("l"), jobs.Queue("other")))
		f.enqueue(work.With("c", jobs.DependsOn(first), jobs.Queue("third")))
		late := f.enqueue(work.With("d", jobs.DependsOn(first), jobs.In(time.Hour)))
		f.work(2 * time.Hour)
		f.wantRuns(0, time.Minute, time.Minute, time.Hour)
		f.want(late, jobs.Completed, "")
	})
}

func TestUpstreamResultsAreTyped(t *testing.T) {
	sums := make(chan []string, 1)
	onFakeTime(t, WorkOptions{}, func(ctx context.Context, f *fakeTimeTest, in string) (string, error) {
		if in != "last" {
			return in + "!", nil
		}
		tasks, err := Upstream(ctx)
		var results []string
		for _, task := range tasks {
			result, err := work.Result(task, nil)
			if err != nil {
				return "", err
			}
			results = append(results, result)
		}
		sums <- results
		return "", err
	}, func(f *fakeTimeTest) {
		one, two := f.enqueue(work.With("one")), f.enqueue(work.With("two"))
		f.enqueue(work.With("last", jobs.DependsOn(two), jobs.DependsOnAny(one)))
		if err := f.Work(f.Context(), WorkOptions{UntilEmpty: true}); err != nil {
			f.Fatal(err)
		}
		got := <-sums
		testkit.Len(f.T, "results", got, 2)
		testkit.Equal(f.T, "first result", got[0], "one!")
		testkit.Equal(f.T, "second result", got[1], "two!")
		_, err := Upstream(f.Context())
		testkit.ErrorIs(f.T, err, jobs.ErrInvalid)
	})
}
