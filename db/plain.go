package db

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"

	"example.com/runner/jobs"
)

// A turn on a server is a plain one if all that has ended has completed, and nothing that orders tasks or holds them back is in use: as a
// rule it is. No answer decides then what comes next, and no two such turns can get in each other's way. So they have the lock of the schema
// together, each is one message on the way there, and what has ended is written on one connection while the next tasks are claimed on
// another: the server works for both at once, and for the plain turns of all workers. Each message asserts that it belongs to a plain turn; if
// not, the turn is taken again, step by step.
var (
	assertUnused    = query(`SELECT 1 / CASE WHEN (SELECT {features}) = 0 THEN 1 ELSE 0 END`)
	assertCompleted = command(`WITH ended AS (` + completeAll + `) SELECT 1 / CASE WHEN count(*) = ? THEN 1 ELSE 0 END FROM ended`)
)

const (
	carefulFor = 200 // turns after one that was not plain
)

// plain says whether a turn may be tried as a plain one, and which attempts it ends.
func (w *Worker) plain(turn Turn) (completions, bool) {
	if !w.db.traits.FastPath || len(turn.Finish) == 0 && turn.Claim.Free <= 0 || w.careful.Add(-1) >= 0 || turn.Look || turn.Claim.MaxWait > 0 || len(w.claimer.suspects) > 0 {
		return completions{}, false
	}
	ends := completionsOf(turn.Finish, turn.Now)
	return ends, len(ends.rows) == len(turn.Finish) && !ends.lanes
}

// turnPlainly takes a turn as a plain one. If it was none, the error has the code notPlain; tasks may have been claimed.
func (w *Worker) turnPlainly(ctx context.Context, turn Turn, ends completions) (done Turned, err error) {
	var claiming sync.WaitGroup
	var claim, finish error
	if turn.Claim.Free > 0 {
		claiming.Go(func() {
			claim = w.db.claims.updatePlain(ctx, func(t *tx) (err error) {
				done.Claimed, done.NextStart, err = t.claim(w.claimer, turn.Claim, turn.Now)
				return err
			})
		})
	}
	if len(turn.Finish) > 0 {
		finish = w.db.updatePlain(ctx, func(t *tx) error { return t.completePlain(w.number, turn, ends) })
		done.Finished = make([]Finished, len(turn.Finish))
		for i := range done.Finished {
			done.Finished[i].Change = ends.changes[i]
		}
	}
	claiming.Wait()
	if claim != nil { // whether it was committed or not: what nobody runs is found by a heartbeat
		done.Claimed = nil
	}
	return done, cmp.Or(finish, claim)
}

// updatePlain is update, to the disk, for a part of a plain turn.
func (w *writer) updatePlain(ctx context.Context, run func(*tx) error) error {
	return w.submit(ctx, &request{level: full, shared: true, run: func(t *tx) error {
		if err := t.later(assertUnused); err != nil {
			return err
		}
		t.used, t.news = usesOf(0), false
		return run(t)
	}}, false)
}

// completePlain ends all attempts of a turn, or none.
func (t *tx) completePlain(worker int64, turn Turn, ends completions) error {
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
