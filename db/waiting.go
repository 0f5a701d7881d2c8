package db

import (
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// A waiting task has not finished and does not run: it is scheduled, pending,
// blocked or retrying. This file moves one waiting task to another such state,
// or cancels it. Many at once become pending in due.go and expire there, and a
// claim makes them running.

const isWaiting = `(state = 'scheduled' OR state = 'pending' OR state = 'blocked' OR state = 'retrying')`

// canMove is the condition isWaiting in Go.
func canMove(s jobs.State) bool {
	return s == jobs.Scheduled || s == jobs.Pending || s == jobs.Blocked || s == jobs.Retrying
}

// moveWaiting gives the waiting task [5] of generation [6] the state [1] at the
// time [4]. [2] is its column waits. A task that waited for its lane takes the
// slot [3], and any other keeps its slot. The generation goes up if the state
// changes, and for a blocked task that plain SQL has inserted (generation 0),
// which link reads. The index tasks_lane rejects a second holder of a slot.
var moveWaiting = command(`UPDATE {tasks} SET state = ?1, waits = ?2,
	lane_slot = CASE WHEN waits = 0 THEN ?3 ELSE lane_slot END, updated_at = ?4,
	generation_id = generation_id + CASE WHEN state = ?1 AND (generation_id > 0 OR state <> 'blocked') THEN 0 ELSE 1 END
WHERE id = ?5 AND generation_id = ?6 AND ` + isWaiting)

// setDue makes task [2] of generation [3] due at [1]. It isn't a part of
// moveWaiting, because a write of run_at runs the trigger tasks_reopened, which
// takes a tenth of the time of a task.
var setDue = command(`UPDATE {tasks} SET run_at = ? WHERE id = ? AND generation_id = ?`)

// cancelWaiting cancels the waiting task [5]. [1] is the reason, [2] the error,
// and [3] and [4] are the time. All else in the outcome stays that of the last
// attempt.
var cancelWaiting = command(`UPDATE {tasks} SET state = 'cancelled', generation_id = generation_id + 1, waits = NULL,
	outcome = {cancelled_outcome}, finished_at = ?, updated_at = ?
WHERE id = ? AND ` + isWaiting + ` RETURNING queue, coalesce(lane, '')`)

// waitingTask has the columns by which a blocked task moves on.
type waitingTask struct {
	ID         int64  `db:"task_id"`
	Generation int64  `db:"generation_id"`
	Lane       text   `db:"lane"`
	RunAt      number `db:"run_at"`
	// Whether the task was due when it was added or retried. Then it's due as
	// soon as nothing blocks it, even if the clock that wrote run_at was ahead
	// and has been set back since.
	Due boolean `db:"due"`
}

const waitingColumns = `tasks.id AS task_id, generation_id, lane, run_at,
	(run_at <= created_at OR run_at = updated_at) AS due`

// move is a new state of a waiting task.
type move struct {
	to    jobs.State
	waits bool  // if it's blocked: whether for other tasks or a resume, and not for its lane
	slot  int64 // slot of the lane for which the task has waited
}

func (t *tx) move(id, generation int64, m move, now time.Time) error {
	t.released = true
	return t.execOne(moveWaiting, string(m.to), waitsValue(m.to, m.waits), nullNumber(m.slot), now.UnixMilli(), id, generation)
}

// release moves a blocked task that waits for no task and no resume any more.
// With a lane it stays blocked until freeLanes makes it pending.
func (t *tx) release(w waitingTask, lanes *laneSet, now time.Time) error {
	due := w.RunAt.time()
	if w.Due {
		due = now
	}
	to := taskspec.InitialState(due, now, false, w.Lane != "")
	if to == jobs.Blocked {
		lanes.add(string(w.Lane))
	}
	return t.move(w.ID, w.Generation, move{to: to}, now)
}

// cancelWaiting cancels a waiting task; the caller passes the result to
// afterEnd. The error is sql.ErrNoRows if the task doesn't wait.
func (t *tx) cancelWaiting(id int64, reason jobs.Reason, text string, now time.Time) (end, error) {
	e := end{id: id, state: jobs.Cancelled}
	ms := now.UnixMilli()
	err := t.scan(cancelWaiting, []any{string(reason), text, ms, ms, id}, &e.queue, &e.lane)
	if err == nil {
		err = t.stopWaiting(id)
	}
	return e, err
}

// stopWaiting ends the pause of a cancelled task and closes its dependencies.
func (t *tx) stopWaiting(id int64) error {
	if err := t.pipeline(deleteTaskPause, id); err != nil {
		return err
	}
	return t.pipeline(closeAll, id)
}
