package runner

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

// watched starts a Watch, and returns a function that ends it and returns a
// line for each of its elements.
func (f *fakeTimeTest) watched(filter jobs.Filter) (stop func() []string) {
	ctx, cancel := context.WithCancelCause(f.Context())
	enough := errors.New("enough")
	lines := make(chan []string)
	go func() {
		var seen []string
		for task, err := range f.Watch(ctx, filter) {
			if err != nil {
				testkit.ErrorIs(f.T, err, enough)
				break
			}
			line := fmt.Sprintf("%d %s", task.ID, task.State)
			if task.Attempt > 0 {
				line += fmt.Sprintf(" %d", task.Attempt)
			}
			if p := task.Progress; p != nil {
				line += fmt.Sprintf(" %d/%d", p.Done, p.Total)
			}
			seen = append(seen, line)
		}
		lines <- seen
	}()
	synctest.Wait()
	return func() []string {
		synctest.Wait()
		cancel(enough)
		return <-lines
	}
}

func TestWatchYieldsTasksAndThenTheirChanges(t *testing.T) {
	onFakeTime(t, WorkOptions{}, func(ctx context.Context, f *fakeTimeTest, in string) (string, error) {
		for i := range int64(3) {
			time.Sleep(5 * time.Second)
			Progress(ctx, i, 3, "")
		}
		time.Sleep(5 * time.Second)
		return "", jobs.Fail(errors.New("no route"))
	}, func(f *fakeTimeTest) {
		first := f.enqueue(work.With("x"))
		later := f.enqueue(work.With("y", jobs.In(time.Hour)))
		stop := f.watched(jobs.Filter{Queues: []string{"default"}})
		f.work(time.Minute)
		for _, change := range []func() error{
			func() error { _, err := f.Retry(f.Context(), []int64{first}, RetryOptions{In: time.Hour}); return err },
			func() error { _, err := f.Cancel(f.Context(), []int64{first, later}, CancelOptions{}); return err },
			func() error { _, err := f.Enqueue(f.Context(), work.With("z")); return err },
			func() error { _, err := f.Delete(f.Context(), []int64{first}); return err },
		} {
			time.Sleep(2 * time.Second)
			testkit.NoError(t, change())
		}
		time.Sleep(2 * time.Second)
		testkit.Equal(t, "elements", stop(), []string{"1 pending", "2 scheduled",
			"1 running 1", "1 running 1 0/3", "1 running 1 1/3", "1 running 1 2/3", "1 failed 1 2/3",
			"1 scheduled", "1 cancelled", "2 cancelled", "3 pending", "1 "})
	})
}

// TestWatchYieldsTaskThatLeavesItsFilterOnce watches running tasks.
func TestWatchYieldsTaskThatLeavesItsFilterOnce(t *testing.T) {
	onFakeTime(t, WorkOptions{}, func(context.Context, *fakeTimeTest, string) (string, error) {
		time.Sleep(5 * time.Second)
		return "", nil
	}, func(f *fakeTimeTest) {
		f.enqueue(work.With("x"))
		stop := f.watched(jobs.Filter{States: []jobs.State{jobs.Running}})
		f.work(time.Minute)
		testkit.Equal(t, "elements", stop(), []string{"1 running 1", "1 completed 1"})
	})
}

// TestWatchMergesChangesBetweenReads changes tasks faster than Watch reads, and
// more of them than it watches.
func TestWatchMergesChangesBetweenReads(t *testing.T) {
	onFakeTime(t, WorkOptions{}, func(context.Context, *fakeTimeTest, string) (string, error) {
		time.Sleep(10 * time.Millisecond)
		return "", nil
	}, func(f *fakeTimeTest) {
		specs := slices.Repeat([]jobs.Spec{work.With("x", jobs.In(time.Hour))}, maxWatched)
		_, err := f.EnqueueSeq(f.Context(), slices.Values(specs))
		testkit.NoError(t, err)
		stop := f.watched(jobs.Filter{})
		last := f.enqueue(work.With("x"))
		f.work(time.Minute)
		got := stop()
		if got[0] != "1 scheduled" || got[maxWatched-1] != fmt.Sprintf("%d scheduled", maxWatched) {
			t.Errorf("got first elements from %q to %q, want from task 1 to task %d", got[0], got[maxWatched-1], maxWatched)
		}
		testkit.Equal(t, "elements", got[maxWatched:], []string{fmt.Sprintf("%d completed 1", last)})
	})
}

func TestWatchEndsWithItsLoop(t *testing.T) {
	onFakeTime(t, WorkOptions{}, nil, func(f *fakeTimeTest) {
		f.enqueue(work.With("x"))
		f.enqueue(work.With("y"))
		for task, err := range f.Watch(f.Context(), jobs.Filter{}) {
			testkit.NoError(t, err)
			testkit.Equal(t, "task", task.ID, 1)
			break
		}
		for _, err := range f.Watch(f.Context(), jobs.Filter{States: []jobs.State{"none"}}) {
			testkit.ErrorIs(t, err, jobs.ErrInvalid)
		}
		testkit.NoError(t, f.Close())
		for _, err := range f.Watch(f.Context(), jobs.Filter{}) {
			testkit.ErrorIs(t, err, jobs.ErrClosed)
		}
	})
}
