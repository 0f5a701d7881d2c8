package db

import (
	"context"
	"time"

	"example.com/runner/db/internal/engine"
)

// A lane is a key of tasks that run one at a time. A task holds its lane while it is pending, running or retrying. The other due tasks of
// the lane are blocked. When the holder finishes or is snoozed, freeLane gives the lane to the next task in the same transaction (see
// end.go). The next task is the one with the highest priority, and among these the one with the lowest id. The unique index tasks_lane
// rejects a second holder. The rates of lanes are in limit.go.

// laneHeld reports whether a task holds lane [1]. Index: tasks_lane.
var laneHeld = query(`SELECT EXISTS (SELECT 1 FROM {tasks} WHERE lane = ? AND (state = 'pending' OR state = 'running'
	OR state = 'retrying'))`)

// laneNext finds the next task of lane [1]: highest priority, then lowest id. Index: tasks_blocked.
var laneNext = query(`SELECT id, generation_id FROM {tasks} WHERE waits = 0 AND lane = ? ORDER BY priority DESC, id LIMIT 1`)

// unblockTask makes the blocked task [2] of generation [3] pending at time [1]. The task has no lane, or it takes its lane now. The
// index tasks_lane rejects a second holder of a lane.
var unblockTask = command(`UPDATE {tasks} SET state = 'pending', generation_id = generation_id + 1, waits = NULL, updated_at = ?
WHERE id = ? AND generation_id = ? AND waits = 0`)

// laneHolder finds the task that holds lane [1], for display. Index: tasks_lane.
var laneHolder = query(`SELECT id FROM {tasks} WHERE lane = ? AND (state = 'pending' OR state = 'running' OR state = 'retrying')`)

// laneSet holds lanes that may have become free, each once, in the order in which they were added.
type laneSet struct {
	order []string
	seen  map[string]bool
}

func (s *laneSet) add(lane string) {
	if lane == "" || s.seen[lane] {
		return
	}
	if s.seen == nil {
		s.seen = map[string]bool{}
	}
	s.seen[lane] = true
	s.order = append(s.order, lane)
}

func (t *tx) freeLanes(lanes laneSet, now time.Time) error {
	for _, lane := range lanes.order {
		if err := t.freeLane(lane, now); err != nil {
			return err
		}
	}
	return nil
}

// freeLane gives a lane to its next task if no task holds the lane and its rate lets a task start. It is safe to call at any time, because
// a task that holds the lane keeps it.
func (t *tx) freeLane(lane string, now time.Time) error {
	var held bool
	if err := t.scan(laneHeld, []any{lane}, &held); err != nil || held {
		return err
	}
	var next, generation int64
	err := t.scan(laneNext, []any{lane}, &next, &generation)
	waits := err == nil
	if engine.NoRow(err) != nil {
		return err
	}
	if open, err := t.laneOpen(lane, waits, now); err != nil || !open || !waits {
		return err
	}
	t.moved = true
	return t.one(unblockTask, now.UnixMilli(), next, generation)
}

// These statements move a due task [2] of generation [3] that has a lane. startHolder starts a task that holds its lane, at time [1].
// delayHolder makes the holder wait for the lane's rate until [1]. blockTask makes any other task wait for the lane, at time [1].
var (
	startHolder = command(`UPDATE {tasks} SET state = 'pending', generation_id = generation_id + 1, updated_at = ? WHERE id = ?
		AND generation_id = ?`)
	delayHolder = command(`UPDATE {tasks} SET run_at = ? WHERE id = ? AND generation_id = ?`)
	blockTask   = command(`UPDATE {tasks} SET state = 'blocked', generation_id = generation_id + 1, waits = 0, updated_at = ? WHERE id = ?
		AND generation_id = ?`)
)

// startHolder starts the next attempt of a task that holds its lane, as soon as the lane's rate allows it.
func (t *tx) startHolder(r *row, now time.Time) error {
	_, next, err := t.laneRate(string(r.Lane), now)
	switch {
	case err != nil:
		return err
	case next.IsZero():
		return t.one(startHolder, now.UnixMilli(), r.ID, r.GenerationID)
	default:
		return t.one(delayHolder, next.UnixMilli(), r.ID, r.GenerationID)
	}
}

// laneTaken reports whether a due task has to wait for its lane.
func (t *tx) laneTaken(lane string) (bool, error) {
	if lane == "" {
		return false, nil
	}
	features, err := t.features()
	if err != nil || features.limits { // the lane can have a rate; so the task waits, and freeLane releases it when the rate allows
		return true, err
	}
	var held bool
	err = t.scan(laneHeld, []any{lane}, &held)
	return held, err
}

// unblock makes a blocked task pending if it has no lane. It adds the lane of any other task to lanes, for freeLanes.
func (t *tx) unblock(id, generation int64, lane string, lanes *laneSet, now time.Time) error {
	if lane != "" {
		lanes.add(lane)
		return nil
	}
	t.moved = true
	return t.one(unblockTask, now.UnixMilli(), id, generation)
}

// LaneHolder returns the id of the task that holds a lane, or 0 if no task holds it.
func (d *DB) LaneHolder(ctx context.Context, lane string) (int64, error) {
	id, err := readValue[int64](ctx, d, laneHolder, lane)
	return id, engine.NoRow(err)
}
