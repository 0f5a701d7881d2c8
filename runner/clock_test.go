package runner

import (
	"testing"
	"time"

	"example.com/runner/jobs"
)

// kept says how many tasks the database has.
func (b *bubble) kept() int {
	b.Helper()
	tasks, err := b.List(b.Context(), jobs.Filter{}, Page{})
	if err != nil {
		b.Fatal(err)
	}
	return len(tasks)
}

// A worker that starts days after the last sign of life of any worker cannot tell a machine that was off from a clock that is wrong.
func TestAWorkerThatStartsDaysLaterDeletesNothingForAnHour(t *testing.T) {
	fake(t, Options{Keep: time.Hour}, nil, func(b *bubble) {
		b.enqueue(work.With("x"))
		b.work(time.Minute)
		time.Sleep(25 * time.Hour)
		for range 2 { // a restart within that hour changes nothing
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

// jumping is a Work whose clocks the test reads: the loop has not begun, so that nothing else looks at them.
func (b *bubble) jumping() *engine {
	b.Helper()
	e, err := b.newEngine(b.Context(), false)
	if err != nil {
		b.Fatal(err)
	}
	return e
}

// A clock that jumps under a running worker pauses the deletions of all workers until an hour has passed, a person confirms that it is
// right, or it jumps back.
func TestAJumpOfTheClockPausesDeletions(t *testing.T) {
	const century = 100 * 365 * 24 * time.Hour
	for name, test := range map[string]struct {
		jump    time.Duration
		after   func(b *bubble, e *engine)
		later   time.Duration // of the look that counts, on the steady clock
		back    time.Duration // how far the clock jumped back before that
		deletes bool
	}{
		"at once":          {jump: century},
		"to a day":         {jump: jumpLeast, deletes: true},
		"for an hour":      {jump: century, later: jumpPause - time.Second},
		"after an hour":    {jump: century, later: jumpPause, deletes: true},
		"set back":         {jump: century, later: time.Minute, back: century, deletes: true},
		"jumps again":      {jump: 30 * time.Hour, later: jumpPause, back: -30 * time.Hour},
		"set further back": {jump: century, later: time.Minute, back: century + time.Hour, deletes: true},
		"beside a new one": {jump: century, later: time.Minute, after: func(b *bubble, e *engine) { *e = *b.jumping() }},
		"confirmed": {jump: century, later: time.Minute, deletes: true, after: func(b *bubble, _ *engine) {
			if err := b.Resume(b.Context(), DeletionPause); err != nil {
				b.Error(err)
			}
		}},
		"all queues resumed": {jump: century, later: time.Minute, after: func(b *bubble, _ *engine) {
			if err := b.Resume(b.Context(), AllQueues); err != nil {
				b.Error(err)
			}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			fake(t, Options{}, nil, func(b *bubble) {
				e := b.jumping()
				began := now().Round(0)
				e.compareClocks(b.Context(), began.Add(time.Minute), time.Minute) // a minute like any other
				if got, present := e.deleteAsOf(b.Context(), began.Add(time.Minute)); !present || !got.Equal(began.Add(time.Minute)) {
					t.Fatalf("before the jump tasks are deleted as of %v, want the present", got)
				}
				wall := began.Add(time.Minute + test.jump)
				e.compareClocks(b.Context(), wall, time.Minute)
				if test.after != nil {
					test.after(b, e)
				}
				wall = wall.Add(test.later - test.back)
				e.compareClocks(b.Context(), wall, time.Minute+test.later)
				got, present := e.deleteAsOf(b.Context(), wall)
				if present != test.deletes || !test.deletes && !got.IsZero() {
					t.Errorf("tasks are deleted as of %v (present: %v), want present: %v", got, present, test.deletes)
				}
				pauses, err := b.Pauses(b.Context())
				if _, told := pauses[DeletionPause]; err != nil || told == test.deletes {
					t.Errorf("got %v, %v, want a pause: %v", pauses, err, !test.deletes)
				}
			})
		})
	}
}

// Where a worker runs for some minutes every week, each deletes what was old when the one before it ran.
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
