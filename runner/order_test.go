package runner

import (
	"context"
	"errors"
	"testing"
	"time"

	"example.com/runner/jobs"
)

func TestARateWakesTheWorkerWhenTheNextMayStart(t *testing.T) {
	fake(t, Options{Concurrency: 4}, nil, func(b *bubble) {
		l := jobs.Limit{Target: jobs.Target{Kind: "job", Name: "work"}, Rate: 1, Per: time.Hour, Burst: 1}
		if err := b.SetLimit(b.Context(), l); err != nil {
			b.Fatal(err)
		}
		for range 4 {
			b.enqueue(work.With("x"))
		}
		// The test removes the limit after two and a half hours. From then on the limit delays no task.
		b.within(150*time.Minute, func() {
			if err := b.RemoveLimit(b.Context(), l.Target); err != nil {
				b.Error(err)
			}
		})
		b.work(3 * time.Hour)
		b.ran(0, time.Hour, 2*time.Hour, 150*time.Minute)
		if err := b.RemoveLimit(b.Context(), l.Target); !errors.Is(err, jobs.ErrNotFound) {
			b.Errorf("got %v; want Is(err, ErrNotFound)", err)
		}
	})
}

func TestTheRateOfALaneWakesTheWorkerToo(t *testing.T) {
	fake(t, Options{Concurrency: 4}, nil, func(b *bubble) {
		l := jobs.Limit{Target: jobs.Target{Kind: "lane", Name: "l"}, Rate: 1, Per: time.Hour, Burst: 1}
		if err := b.SetLimit(b.Context(), l); err != nil {
			b.Fatal(err)
		}
		for range 3 {
			b.enqueue(work.With("x", jobs.Lane("l")))
		}
		if err := b.WorkUntilEmpty(b.Context()); err != nil { // due tasks run, however long they take
			b.Fatal(err)
		}
		b.ran(0, time.Hour, 2*time.Hour)
	})
}

func TestWhatWasFreedRunsAtOnce(t *testing.T) {
	fake(t, Options{Concurrency: 4}, func(context.Context, *bubble, string) (string, error) {
		time.Sleep(time.Minute)
		return "x", nil
	}, func(b *bubble) {
		first := b.enqueue(work.With("a", jobs.Lane("l")))
		b.enqueue(work.With("b", jobs.Lane("l"), jobs.Queue("other")))
		b.enqueue(work.With("c", jobs.After(first), jobs.Queue("third")))
		late := b.enqueue(work.With("d", jobs.After(first), jobs.In(time.Hour)))
		b.work(2 * time.Hour)
		b.ran(0, time.Minute, time.Minute, time.Hour)
		b.want(late, jobs.Completed, "")
	})
}

func TestUpstreamResultsAreTyped(t *testing.T) {
	sums := make(chan []string, 1)
	fake(t, Options{}, func(ctx context.Context, b *bubble, in string) (string, error) {
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
	}, func(b *bubble) {
		one, two := b.enqueue(work.With("one")), b.enqueue(work.With("two"))
		b.enqueue(work.With("last", jobs.After(two), jobs.AfterAny(one)))
		if err := b.WorkUntilEmpty(b.Context()); err != nil {
			b.Fatal(err)
		}
		if got := <-sums; len(got) != 2 || got[0] != "one!" || got[1] != "two!" {
			b.Errorf(`got %+v; want len(got) = 2, got[0] = "one!", got[1] = "two!"`, got)
		}
		if _, err := Upstream(b.Context()); !errors.Is(err, jobs.ErrInvalid) {
			b.Errorf("got %v; want Is(err, ErrInvalid)", err)
		}
	})
}

func TestMaxWaitLetsLowPriorityFinishBesideAFlood(t *testing.T) {
	fake(t, Options{Concurrency: 1, MaxWait: time.Minute}, func(_ context.Context, b *bubble, in string) (string, error) {
		time.Sleep(time.Second)
		if in == "flood" { // the flood does not end by itself
			b.enqueue(work.With("flood", jobs.Priority(9)))
		}
		return "", nil
	}, func(b *bubble) {
		low := b.enqueue(work.With("low", jobs.Priority(1)))
		b.enqueue(work.With("flood", jobs.Priority(9)))
		b.work(3 * time.Minute)
		task := b.want(low, jobs.Completed, "")
		if waited := task.StartedAt.Sub(task.CreatedAt); waited < time.Minute || waited > time.Minute+8*time.Second {
			b.Errorf("it has waited for %v", waited)
		}
	})
}
