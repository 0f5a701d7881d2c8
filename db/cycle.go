package db

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/runner/jobs"
)

// Cycle is one round of a worker's loop: finish what has ended, then claim for the slots that are free. It is one write, so that
// a worker that is busy pays for one transaction and not for two.
type Cycle struct {
	Now    time.Time
	Finish []Finish
	Claim  Claim
	Look   bool // somebody else may have changed something: look for what is due, and for new queues. Else only what is known counts
}

// CycleResult is what a Cycle did.
type CycleResult struct {
	Finished []Finished  // one for each Finish
	Claimed  []jobs.Task // in the order in which to start them
	Looked   bool        // it has looked for what is due, asked to or because tasks were freed
	NextDue  time.Time   // if it has looked: when something else becomes due or expires; zero: nothing is scheduled
	// NextStart is when a rate lets a task start that is due already; zero: none waits for that, or nothing was to be claimed.
	NextStart time.Time
	NextLane  time.Time // if it has looked: the same of the rate of a lane
	NoRoom    error     // why nothing was claimed though there may be something: the disk is nearly full
}

// Cycle runs one round of worker w. If it finishes anything it returns when that is on the disk. It can be repeated after an error:
// a finish that was accepted stays accepted, and tasks claimed by a cycle whose answer was lost show up in Beat as claims that nobody has.
func (w *Worker) Cycle(ctx context.Context, turn Cycle) (CycleResult, error) {
	var claimed []jobs.Task
	if ends, ok := w.fastPath(turn); ok {
		done, err := w.fastCycle(ctx, turn, ends)
		if !w.db.engine.Asserted(err) {
			if err == nil {
				w.attemptCounter.finished(turn.Finish, done.Finished)
			}
			return done, err
		}
		w.slowPath.Store(slowPathCycles)
		if claimed = done.Claimed; claimed != nil {
			turn.Claim.Free = 0
		}
	}
	to := normal
	if len(turn.Finish) > 0 {
		to = full
	}
	done, err := w.cycle(ctx, turn, to, true)
	if errors.Is(err, errRefusedTogether) {
		done, err = w.cycle(ctx, turn, to, false)
	}
	if err == nil {
		w.attemptCounter.finished(turn.Finish, done.Finished)
		if len(claimed) > 0 {
			done.Claimed = append(claimed, done.Claimed...)
		}
	}
	return done, err
}

func (w *Worker) cycle(ctx context.Context, turn Cycle, to level, together bool) (done CycleResult, err error) {
	err = w.db.update(ctx, to, func(t *tx) (err error) {
		done = CycleResult{}
		t.moved = false
		if done.Finished, err = t.finish(w.number, turn.Finish, together, turn.Now); err != nil {
			return fmt.Errorf("finish tasks: %w", err)
		}
		if done.Looked = turn.Look || t.moved; done.Looked {
			w.claimer.names = nil
			if done.NextDue, done.NextLane, err = t.due(turn.Now); err != nil {
				return fmt.Errorf("promote tasks: %w", err)
			}
			if err = t.findSuspects(w.claimer); err != nil {
				return fmt.Errorf("look for suspects: %w", err)
			}
		}
		if turn.Claim.Free > 0 {
			if done.NoRoom = t.room(); done.NoRoom != nil {
				return nil
			}
		}
		if done.Claimed, done.NextStart, err = t.claim(w.claimer, turn.Claim, turn.Now); err != nil {
			return fmt.Errorf("claim tasks: %w", err)
		}
		t.news = t.moved || len(turn.Finish) > 0 && t.used.limits || slices.ContainsFunc(done.Finished, func(f Finished) bool {
			return f.Fenced || f.Change.State != jobs.Completed
		})
		return nil
	})
	return done, err
}
