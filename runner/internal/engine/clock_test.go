package engine

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/test/testkit"
)

// TestJumpOfClockPausesDeletions checks that all workers pause deletions when
// the clock of a running worker jumps. The pause ends after an hour, when a
// person confirms that the clock is right, or when the clock jumps back.
func TestJumpOfClockPausesDeletions(t *testing.T) {
	const century = 100 * 365 * 24 * time.Hour
	for name, test := range map[string]struct {
		jump time.Duration
		// after runs when the clock has jumped. It may change the pause, and
		// returns an engine. The test then checks whether this engine deletes
		// tasks.
		after   func(t *testing.T, e *Engine) *Engine
		later   time.Duration // time from the jump to the check of deletions, on the clock that never jumps
		back    time.Duration // time by which the clock jumps back before the check of deletions
		deletes bool
	}{
		"at once":          {jump: century},
		"to a day":         {jump: minJump, deletes: true},
		"for an hour":      {jump: century, later: jumpPause - time.Second},
		"after an hour":    {jump: century, later: jumpPause, deletes: true},
		"set back":         {jump: century, later: time.Minute, back: century, deletes: true},
		"jumps again":      {jump: 30 * time.Hour, later: jumpPause, back: -30 * time.Hour},
		"set further back": {jump: century, later: time.Minute, back: century + time.Hour, deletes: true},
		"beside a new one": {jump: century, later: time.Minute, after: func(t *testing.T, e *Engine) *Engine { return newEngine(t, e.o) }},
		"confirmed": {jump: century, later: time.Minute, deletes: true, after: func(t *testing.T, e *Engine) *Engine {
			if err := e.store.Resume(t.Context(), []string{db.DeletionPause}); err != nil {
				t.Error(err)
			}
			return e
		}},
		"all queues resumed": {jump: century, later: time.Minute, after: func(t *testing.T, e *Engine) *Engine {
			if err := e.store.Resume(t.Context(), []string{db.AllQueues}); err != nil {
				t.Error(err)
			}
			return e
		}},
	} {
		t.Run(name, func(t *testing.T) {
			onFakeTime(t, func(t *testing.T, o Options, _ *atomic.Int64) {
				e := newEngine(t, o)
				began := time.Now().Round(0)
				e.compareClocks(t.Context(), began.Add(time.Minute), time.Minute) // both clocks advance by a minute
				if got, present := e.deleteAsOf(t.Context(), began.Add(time.Minute)); !present || !got.Equal(began.Add(time.Minute)) {
					t.Fatalf("before the jump tasks are deleted as of %v, want the present", got)
				}
				wall := began.Add(time.Minute + test.jump)
				e.compareClocks(t.Context(), wall, time.Minute)
				pauses, err := o.Store.Pauses(t.Context(), now())
				testkit.NoError(t, err)
				want := fmt.Sprintf("the clock jumped from %s to %s", stamp(began.Add(time.Minute)), stamp(wall))
				if got := pauses[db.DeletionPause].Reason; test.jump > minJump && got != want {
					t.Errorf("got reason %q, want %q", got, want)
				}
				if test.after != nil {
					e = test.after(t, e)
				}
				wall = wall.Add(test.later - test.back)
				e.compareClocks(t.Context(), wall, time.Minute+test.later)
				got, present := e.deleteAsOf(t.Context(), wall)
				if present != test.deletes || !test.deletes && !got.IsZero() {
					t.Errorf("tasks are deleted as of %v (present: %v), want present: %v", got, present, test.deletes)
				}
				pauses, err = o.Store.Pauses(t.Context(), wall)
				if _, paused := pauses[db.DeletionPause]; err != nil || paused == test.deletes {
					t.Errorf("got pauses %v and error %v, want a pause of deletions: %v", pauses, err, !test.deletes)
				}
			})
		})
	}
}
