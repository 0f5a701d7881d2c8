package db

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/runner/jobs"
)

// Cycle is one write of a worker's loop. It finishes the attempts that have ended, and then claims tasks for the free slots. So a busy
// worker needs one transaction instead of two.
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
	Looked   bool        // whether the cycle looked for due tasks: Cycle.Look was set, or an ended attempt released or retried tasks
	Expired  []int64     // tasks that the cycle cancelled because they had expired
	Released bool        // whether tasks that ended in this cycle have released tasks that waited for them
	Full     bool        // whether the claim has used up a limit on running tasks
	NextDue  time.Time   // if Looked: time at which the next task becomes due or expires; zero if there is none
	// NextStart is the time at which a later claim can start more tasks that are
	// already due. They wait for a rate limit or for a full batch, or their index
	// entries are among those that this claim has skipped (see floor.go). NextStart
	// is zero if no such task waits, or if Claim.Free is 0.
	NextStart time.Time
	NextLane  time.Time // if Looked: time at which the rate limit of a lane allows the next start of a due task; zero if no task waits
	DiskFull  error     // error if the disk is nearly full; the cycle has then claimed no task
}

// Cycle runs one cycle of worker w. If the cycle finishes attempts, the method returns when their ends are durable. The caller can repeat a
// cycle after an error: the method accepts an end that was already written. If the result of a cycle was lost, the worker does not know the
// tasks that the cycle claimed. It later finds these claims by the method Owned.
func (w *Worker) Cycle(ctx context.Context, c Cycle) (CycleResult, error) {
	if w.db.traits.FastPath && (c.Claim.Free > 0 || c.Look) {
		w.look(ctx, c.Now)
	}
	finishes := c.Finish
	var fast CycleResult // what fastCycle has done; the method "cycle" does the rest (see fastpath.go)
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
		// If a task is retried without a delay, the cycle makes it pending before it claims tasks. So the retried task keeps its place
		// before later tasks.
		again := slices.ContainsFunc(done.Finished, func(f Finished) bool {
			return !f.Change.RunAt.IsZero() && !f.Change.RunAt.After(c.Now)
		})
		if done.Looked = c.Look || t.released || again; done.Looked {
			w.claimer.names = nil
			if done.NextDue, done.NextLane, err = t.due(c.Now); err != nil {
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
