package engine

import (
	"sync/atomic"
	"testing"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// TestWorkerThatEndsWhenNoTaskIsLeftRunsLastTick lets a tick happen during the
// last scan of a worker that ends when no task is left. If the worker ended
// then, the task of the tick would stay pending, and later ticks would be
// skipped because of that task.
func TestWorkerThatEndsWhenNoTaskIsLeftRunsLastTick(t *testing.T) {
	onFakeTime(t, func(t *testing.T, o Options, _ *atomic.Int64) {
		s := jobs.Schedule{Name: "beat", Cron: "@every 1s", Zone: "UTC", NextAt: time.Now().Add(time.Second),
			Spec: jobs.Define[struct{}]("work").With(struct{}{})}
		s = taskspec.WithDefaults(s)
		put := func([]jobs.Schedule) ([]jobs.Schedule, []string, error) { return []jobs.Schedule{s}, nil, nil }
		if err := o.Store.ChangeSchedules(t.Context(), "", time.Now(), put); err != nil {
			t.Fatal(err)
		}
		e := newEngine(t, o)
		enqueued := func(when string, want int) {
			t.Helper()
			if got, err := o.Store.Count(t.Context(), jobs.Filter{Schedule: "beat"}); got != want || err != nil {
				t.Errorf("%s: got %d tasks and error %v, want %d", when, got, err, want)
			}
		}
		ends := func(when string, want bool) {
			t.Helper()
			if got := e.endTicks(); got != want {
				t.Errorf("%s: got an end of ticks %v, want %v", when, got, want)
			}
		}
		time.Sleep(1500 * time.Millisecond)
		e.tick(t.Context(), true)
		enqueued("after a tick", 1)
		ends("after a tick whose task nothing has scanned for", false)
		ends("after another scan", true)
		time.Sleep(3 * time.Second)
		e.tick(t.Context(), true)
		enqueued("after the end", 1)
	})
}
