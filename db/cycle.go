package db

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/runner/jobs"
)

// Cycle is one write of a worker's loop. It finishes the attempts that have
// ended, and then claims tasks for the free slots: one transaction instead of
// two.
type Cycle struct {
	Now    time.Time
	Finish []Finish
	Claim  Claim
	Look   bool // whether to look for due tasks and for new queues; set if another process may have changed the database
}

// CycleResult is the result of a Cycle.
type CycleResult struct {
	Finished []Finished  // result of each Finish
	Claimed  []jobs.Task // claimed tasks, in the order in which to start them
	Looked   bool        // whether it looked for due tasks: for Cycle.Look, or because tasks were released or retried
	Expired  []int64     // tasks that the cycle cancelled because they had expired
	Released bool        // whether tasks that ended in this cycle have released tasks that waited for them
	Full     bool        // whether the claim has used up a limit on running tasks
	NextDue  time.Time   // if Looked: when the next task becomes due or expires; zero if there is none
	// Time at which a later claim can start more tasks that are already due:
	// they wait for a rate or for a full batch, or this claim has skipped their
	// index entries (see floor.go). Zero if no such task waits, or if
	// Claim.Free is 0.
	NextStart time.Time
	NextLane  time.Time // if Looked: when the rate of a lane lets a due task start; zero if none waits
	DiskFull  error     // set if the disk is nearly full; then no task was claimed
}

// Cycle runs one cycle of worker w. The ends of attempts are durable when it
// returns. The caller can repeat a cycle after an error: an end that was
// already written is accepted. If the result was lost, the worker doesn't know
// the tasks that were claimed, and later finds them by Owned.
func (w *Worker) Cycle(ctx context.Context, c Cycle) (CycleResult, error) {
	if w.db.traits.FastPath && (c.Claim.Free > 0 || c.Look) {
		w.look(ctx, c.Now)
	}

	finishes := c.Finish
	var fast CycleResult // what fastCycle has done; w.cycle does the rest
	if ends, ok := w.fastPath(c); ok {
		var err error
		fast, err = w.fastCycle(ctx, c, ends)
		switch {
		case w.db.engine.Asserted(err):
			w.slowPath.Store(slowPathCycles)
		case !errors.Is(err, errDue):
			if err == nil {
				w.attemptCounter.finished(finishes, fast.Finished)
			}
			return fast, err
		}

		if fast.Claimed != nil {
			c.Claim.Free = 0
		}
		if fast.Finished != nil {
			c.Finish = nil
		}
	}

	to := normal
	if len(c.Finish) > 0 {
		to = synced
	}

	done, err := w.cycle(ctx, c, to, true)
	if errors.Is(err, errRefusedTogether) {
		done, err = w.cycle(ctx, c, to, false)
	}
	if err == nil {
		if fast.Finished != nil {
			done.Finished = fast.Finished
		}
		w.attemptCounter.finished(finishes, done.Finished)
		if len(fast.Claimed) > 0 {
			done.Claimed = append(fast.Claimed, done.Claimed...)
		}
	}

	return done, err
}

func (w *Worker) cycle(ctx context.Context, c Cycle, to level, together bool) (done CycleResult, err error) {
	err = w.db.update(ctx, to, func(t *tx) (err error) {
		done = CycleResult{}
		t.released, t.expired, t.hooks = false, nil, w.hooks
		if done.Finished, err = t.finish(w.number, c.Finish, together, c.Now); err != nil {
			return fmt.Errorf("finish tasks: %w", err)
		}

		done.Released = t.released
		// A task that is retried without a delay becomes pending before the
		// claim, so it keeps its place before later tasks.
		again := slices.ContainsFunc(done.Finished, func(f Finished) bool {
			return !f.Change.RunAt.IsZero() && !f.Change.RunAt.After(c.Now)
		})
		if done.Looked = c.Look || t.released || again; done.Looked {
			w.claimer.names = nil
			if done.NextDue, done.NextLane, err = t.handleDue(c.Now); err != nil {
				return fmt.Errorf("promote tasks: %w", err)
			}
			done.Expired = t.expired
			if err = t.findSuspects(w.claimer); err != nil {
				return fmt.Errorf("look for suspects: %w", err)
			}
		}

		w.claimer.above = w.claimer.floors.slow && !t.released && !again
		if c.Claim.Free > 0 {
			if done.DiskFull = t.checkSpace(); done.DiskFull != nil {
				return nil
			}
		}
		if done.Claimed, done.NextStart, err = t.claim(w.claimer, c.Claim, c.Now); err != nil {
			return fmt.Errorf("claim tasks: %w", err)
		}

		done.Full = t.full
		t.wakeups = t.released || len(c.Finish) > 0 && t.used.limits || slices.ContainsFunc(done.Finished, func(f Finished) bool {
			return f.Fenced || f.Change.State != jobs.Completed
		})
		return nil
	})
	return done, err
}
