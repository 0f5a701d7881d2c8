package db

import (
	"database/sql"
	"fmt"
	"time"

	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// selectDue returns when the next scheduled or retrying task is due, when the
// next task expires, when the rate of a lane lets its next task start, and when
// the next pause ends. None is NULL, and not 0, which plain SQL may have
// written. Indexes: tasks_due, tasks_expiry, limits_due. The table of pauses is
// small.
var selectDue = query(`SELECT ` + dueColumns)

const dueColumns = `(SELECT min(run_at) FROM {tasks} WHERE state = 'scheduled' OR state = 'retrying'),
	(SELECT expires_at FROM {tasks} WHERE expires_at IS NOT NULL AND started_at IS NULL AND finished_at IS NULL
		ORDER BY expires_at LIMIT 1),
	(SELECT min(due_at) FROM {limits} WHERE due_at IS NOT NULL), (SELECT min(until_at) FROM {pauses})`

// firstDue selects up to 1000 tasks that are due at [1], the earliest first.
// Index: tasks_due.
const firstDue = `SELECT id FROM {tasks} WHERE (state = 'scheduled' OR state = 'retrying') AND run_at <= ? ORDER BY run_at LIMIT 1000`

// promoteTasks makes tasks that are due at [2] pending; [1] is the time. It
// leaves those to promoteOrdered that have a lane, or dependencies from plain
// SQL.
var promoteTasks = command(`UPDATE {tasks} SET state = 'pending', generation_id = generation_id + 1, updated_at = ?
WHERE id IN (` + firstDue + `) AND lane IS NULL AND (generation_id > 0 OR parts IS NULL OR parts < 2)`)

var selectOrdered = query(`SELECT id, queue, lane, state, parts, generation_id FROM {tasks}
WHERE id IN (` + firstDue + `) AND (lane IS NOT NULL OR generation_id = 0 AND parts >= 2)`)

// expireTasks cancels tasks that have not started and whose expiry is at [3] or
// earlier. [1] and [2] are the time. It clears the lease, because plain SQL can
// insert a running task without a start. Index: tasks_expiry.
var expireTasks = command(`UPDATE {tasks} SET state = 'cancelled', generation_id = generation_id + 1, waits = NULL, lease_expires_at = NULL,
	outcome = '{"reason":"expired","error":"not started in time"}', finished_at = ?, updated_at = ? WHERE id IN (
	SELECT id FROM {tasks} WHERE expires_at IS NOT NULL AND started_at IS NULL AND finished_at IS NULL AND expires_at <= ?
	ORDER BY expires_at LIMIT 1000) RETURNING id, queue, lane`)

// maxRounds limits the rounds in one transaction, each with up to 1000 tasks
// that become pending and 1000 that expire. Otherwise other processes would
// wait too long for the lock.
const maxRounds = 10

type dueTimes struct{ task, expiry, lane, pause sql.NullInt64 }

// next returns the earliest of the times, or NULL if all are NULL.
func (d dueTimes) next() (first sql.NullInt64) {
	for _, at := range []sql.NullInt64{d.task, d.expiry, d.lane, d.pause} {
		if at.Valid && (!first.Valid || at.Int64 < first.Int64) {
			first = at
		}
	}
	return first
}

// handleDue makes due tasks pending, cancels expired ones and ends pauses. next
// is when the caller must call it again, and lane when the rate of a lane lets
// a task start that is already due; zero if nothing waits.
func (t *tx) handleDue(now time.Time) (next, lane time.Time, err error) {
	for range maxRounds {
		var times dueTimes
		if err := t.scan(selectDue, nil, &times.task, &times.expiry, &times.lane, &times.pause); err != nil {
			return next, lane, err
		}

		acted := false
		for _, one := range []struct {
			at  sql.NullInt64
			act func(time.Time) error
		}{ // expire first, so no expired task is claimed
			{times.expiry, t.expire}, {times.task, t.promote}, {times.lane, t.freeDueLanes}, {times.pause, t.endPauses},
		} {
			if one.at.Valid && one.at.Int64 <= now.UnixMilli() {
				if err := one.act(now); err != nil {
					return next, lane, err
				}
				acted = true
			}
		}

		if !acted {
			return number(times.next().Int64).time(), number(times.lane.Int64).time(), nil
		}

		t.released = true
	}
	return now, lane, nil // more tasks may be due, so the caller must call due again at once
}

func (t *tx) expire(now time.Time) error {
	var rows []struct {
		ID    int64  `db:"id"`
		Queue string `db:"queue"`
		Lane  text   `db:"lane"`
	}
	ms := now.UnixMilli()
	if err := t.list(&rows, expireTasks, ms, ms, ms); err != nil {
		return err
	}

	ends := make([]end, len(rows))
	for i, r := range rows {
		ends[i] = end{id: r.ID, queue: r.Queue, lane: string(r.Lane), state: jobs.Cancelled}
		t.expired = append(t.expired, r.ID)
		if err := t.stopWaiting(r.ID); err != nil {
			return err
		}
	}

	return t.afterEnd(ends, now)
}

// promote makes due tasks pending. One with a lane or dependencies may become
// blocked or cancelled instead.
func (t *tx) promote(now time.Time) error {
	var ordered []row
	if err := t.list(&ordered, selectOrdered, now.UnixMilli()); err != nil {
		return err
	}
	if err := t.promoteOrdered(ordered, now); err != nil {
		return err
	}
	return t.run(promoteTasks, now.UnixMilli(), now.UnixMilli())
}

func (t *tx) promoteOrdered(rows []row, now time.Time) error {
	var lanes laneSet
	var ends []end
	for i := range rows {
		r := &rows[i]
		var err error
		switch {
		case r.GenerationID == 0 && r.Parts&partDependencies != 0:
			var broken []end
			broken, err = t.adopt(r, &lanes, now)
			ends = append(ends, broken...)
		case taskspec.HoldsLane(jobs.State(r.State)):
			err = t.startHolder(r, now)
		default:
			lanes.add(string(r.Lane))
			err = t.move(r.ID, r.GenerationID, move{to: jobs.Blocked}, now)
		}

		if err != nil {
			return fmt.Errorf("task %d: %w", r.ID, err)
		}
	}

	if err := t.afterEnd(ends, now); err != nil {
		return err
	}

	return t.freeLanes(lanes, now)
}
