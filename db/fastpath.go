package db

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"example.com/runner/jobs"
)

// The fast path of a cycle is for engines where each statement is a round trip.
// A cycle takes it if every attempt that it ends has completed its task, and if
// no dependency, limit or pause is in use, as in most cycles. Then no statement
// depends on the result of an earlier one, and two such cycles can't disturb
// each other. So:
//
//   - The fast cycles of all workers hold the write lock of the schema at the
//     same time.
//   - A cycle ends its tasks on one connection and claims new ones on a second.
//     It sends one message on each, and the server handles both at the same
//     time.
//   - Each message contains an assertion: a statement that divides by zero if
//     the cycle must not take the fast path. The error rolls the transaction
//     back, and the cycle takes the slow path, which sends the statements one
//     by one.
//   - A cycle that looks for due tasks reads when the next one is due before it
//     claims. It takes the slow path only if a task is due already or a suspect
//     is pending. Otherwise each notification about new tasks would make every
//     worker wait for the lock.
var (
	assertUnused    = query(`SELECT 1 / CASE WHEN (SELECT {features}) = 0 THEN 1 ELSE 0 END`)
	assertCompleted = command(`WITH ended AS (` + completeAll + ` RETURNING 1)
	SELECT 1 / CASE WHEN count(*) = ? THEN 1 ELSE 0 END FROM ended`)
)

// selectLook returns the times of selectDue, whether a suspect is pending, and
// the queues with pending tasks as a JSON array. selectLookAbove leaves the
// queues out. Indexes: those of selectDue, tasks_lost and tasks_pending.
var (
	selectLook = query(`SELECT ` + lookColumns + `,
	(SELECT {json_list}(queue) FROM (` + pendingQueues + `) AS pending)`)
	selectLookAbove = query(`SELECT ` + lookColumns + `, NULL`)
)

const lookColumns = dueColumns + `, EXISTS (SELECT 1 FROM {tasks} WHERE ` + pendingSuspect + `)`

// errDue says that a cycle on the fast path has found a due task or a suspect,
// which only the slow path handles.
var errDue = errors.New("tasks are due")

// slowPathCycles is how many cycles take the slow path after a failed
// assertion.
const slowPathCycles = 200

// fastPath reports whether a cycle may try the fast path, and returns the
// attempts that it then ends.
func (w *Worker) fastPath(c Cycle) ([]completion, bool) {
	if !w.db.traits.FastPath || len(c.Finish) == 0 && c.Claim.Free <= 0 && !c.Look || w.slowPath.Add(-1) >= 0 ||
		c.Claim.Only != 0 || w.claimer.waits || len(w.claimer.suspects) > 0 {
		return nil, false
	}
	ends := completionsOf(c.Finish, w.hooks, c.Now)
	lanes := slices.ContainsFunc(c.Finish, func(f Finish) bool { return f.Task.Lane != "" })
	return ends, len(ends) == len(c.Finish) && !lanes
}

// fastCycle runs a cycle on the fast path. engine.Asserted reports true for its
// error if an assertion has failed. Even with an error, or errDue, it may have
// ended its attempts or claimed tasks: then done.Finished or done.Claimed isn't
// nil.
func (w *Worker) fastCycle(ctx context.Context, c Cycle, ends []completion) (done CycleResult, err error) {
	var claiming sync.WaitGroup
	var claim, finish error
	if c.Claim.Free > 0 || c.Look {
		claiming.Go(func() {
			claim = w.db.claims.updateFast(ctx, func(t *tx) (err error) {
				w.claimer.above = w.claimer.floors.slow
				if c.Look {
					if done.NextDue, done.NextLane, err = t.look(w.claimer, c.Now); err != nil {
						return err
					}
				}
				done.Claimed, done.NextStart, err = t.claim(w.claimer, c.Claim, c.Now)
				done.Full = t.full
				return err
			})
		})
	}
	if len(c.Finish) > 0 {
		finish = w.db.updateFast(ctx, func(t *tx) error { return t.completeFast(w.number, c, ends) })
	}
	if len(c.Finish) > 0 && finish == nil {
		done.Finished = make([]Finished, len(c.Finish))
		for i := range done.Finished {
			done.Finished[i].Change = ends[i].change
		}
	}

	claiming.Wait()
	done.Looked = c.Look
	if claim != nil { // the claims may be committed despite the error; the worker later finds them by Owned
		done.Claimed = nil
	}

	return done, cmp.Or(finish, claim)
}

// look reads the queues with pending tasks, and returns the times of handleDue.
// If a task is already due or a suspect is pending, the error is errDue.
func (t *tx) look(c *claimer, now time.Time) (next, lane time.Time, err error) {
	var times dueTimes
	var suspects bool
	var queues []byte
	text := selectLook
	if c.above {
		text = selectLookAbove
	}
	if err := t.scan(text, nil, &times.task, &times.expiry, &times.lane, &times.pause, &suspects, &queues); err != nil {
		return next, lane, err
	}

	first := times.next()
	if suspects || first.Valid && first.Int64 <= now.UnixMilli() {
		return next, lane, errDue
	}

	c.names = []string{} // nil would mean that the names are unknown
	switch {
	case c.above:
		err = c.listQueues(t)
	case queues != nil:
		err = json.Unmarshal(queues, &c.names)
	}

	return number(first.Int64).time(), number(times.lane.Int64).time(), err
}

// updateFast executes one part of a fast cycle, the claim or the ends, in a
// durable transaction that shares the write lock. It fails if a dependency,
// limit or pause is in use.
func (w *writer) updateFast(ctx context.Context, run func(*tx) error) error {
	return w.submit(ctx, &request{level: full, shared: true, run: func(t *tx) error {
		if err := t.pipeline(assertUnused); err != nil {
			return err
		}
		t.used, t.wakeups = featuresOf(0), false
		return run(t)
	}}, false)
}

func (t *tx) completeFast(worker int64, c Cycle, ends []completion) error {
	if err := t.pipeline(assertCompleted, c.Now.UnixMilli(), jsonText(ends), worker, int64(len(ends))); err != nil {
		return err
	}
	list := make([]end, len(c.Finish))
	for i := range c.Finish {
		task := &c.Finish[i].Task
		list[i] = end{id: task.ID, queue: task.Queue, state: jobs.Completed}
	}

	return t.afterEnd(list, c.Now)
}
