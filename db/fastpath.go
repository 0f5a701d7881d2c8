package db

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"

	"example.com/runner/jobs"
)

// The fast path of a cycle is for engines where each statement is a round trip. A cycle takes it if every attempt that it ends has
// completed its task, and if no dependency, limit or pause is in use. Most cycles meet these conditions. Then later statements do not
// depend on earlier results, and two such cycles cannot disturb each other. So:
//
//   - The fast cycles of all workers hold the write lock of the schema at the same time.
//   - A cycle ends its tasks on one connection and claims the next ones on another, with one message each. The server handles both at
//     the same time.
//   - Each message contains an assertion: a statement that divides by zero if the cycle must not take the fast path. The error rolls the
//     transaction back. The cycle then takes the slow path, which sends the statements one by one.
var (
	assertUnused    = query(`SELECT 1 / CASE WHEN (SELECT {features}) = 0 THEN 1 ELSE 0 END`)
	assertCompleted = command(`WITH ended AS (` + completeAll + `) SELECT 1 / CASE WHEN count(*) = ? THEN 1 ELSE 0 END FROM ended`)
)

// slowPathCycles is the number of cycles that take the slow path after one whose assertion failed.
const slowPathCycles = 200

// fastPath reports whether a cycle may try the fast path, and returns the attempts that it ends.
func (w *Worker) fastPath(turn Cycle) (completions, bool) {
	if !w.db.traits.FastPath || len(turn.Finish) == 0 && turn.Claim.Free <= 0 || w.slowPath.Add(-1) >= 0 || turn.Look ||
		turn.Claim.MaxWait > 0 || turn.Claim.Only != 0 || w.claimer.waits || len(w.claimer.suspects) > 0 {
		return completions{}, false
	}
	ends := completionsOf(turn.Finish, w.hooks, turn.Now)
	return ends, len(ends.rows) == len(turn.Finish) && !ends.lanes
}

// fastCycle runs a cycle on the fast path. If an assertion failed, engine.Asserted reports true for the error. Even then the cycle may
// have claimed tasks.
func (w *Worker) fastCycle(ctx context.Context, turn Cycle, ends completions) (done CycleResult, err error) {
	var claiming sync.WaitGroup
	var claim, finish error
	if turn.Claim.Free > 0 {
		claiming.Go(func() {
			claim = w.db.claims.updateFast(ctx, func(t *tx) (err error) {
				done.Claimed, done.NextStart, err = t.claim(w.claimer, turn.Claim, turn.Now)
				done.Full = t.full
				return err
			})
		})
	}
	if len(turn.Finish) > 0 {
		finish = w.db.updateFast(ctx, func(t *tx) error { return t.completeFast(w.number, turn, ends) })
		done.Finished = make([]Finished, len(turn.Finish))
		for i := range done.Finished {
			done.Finished[i].Change = ends.changes[i]
		}
	}
	claiming.Wait()
	if claim != nil { // the claim may or may not be committed; the next heartbeat finds claims that no worker runs
		done.Claimed = nil
	}
	return done, cmp.Or(finish, claim)
}

// updateFast is a durable update for a part of a cycle on the fast path.
func (w *writer) updateFast(ctx context.Context, run func(*tx) error) error {
	return w.submit(ctx, &request{level: full, shared: true, run: func(t *tx) error {
		if err := t.later(assertUnused); err != nil {
			return err
		}
		t.used, t.news = featuresOf(0), false
		return run(t)
	}}, false)
}

// completeFast ends all attempts of a cycle, or none.
func (t *tx) completeFast(worker int64, turn Cycle, ends completions) error {
	text, err := json.Marshal(ends.rows)
	if err != nil {
		return err
	}
	if err := t.later(assertCompleted, turn.Now.UnixMilli(), string(text), worker, int64(len(ends.rows))); err != nil {
		return err
	}
	list := make([]end, len(turn.Finish))
	for i := range turn.Finish {
		task := &turn.Finish[i].Task
		list[i] = end{id: task.ID, queue: task.Queue, state: jobs.Completed}
	}
	return t.ended(list, turn.Now)
}
