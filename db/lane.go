package db

import (
	"context"
	"slices"
	"time"

	"example.com/runner/db/internal/engine"
	"example.com/runner/jobs"
)

// A lane is a key of tasks that run one at a time, or a few at a time if the
// lane has a limit. A task holds its lane while it's pending, running or
// retrying. The other due tasks of the lane are blocked. When a holder finishes
// or is snoozed, freeLane gives its slot to the next task in the same
// transaction (see end.go): the one with the highest priority, then the lowest
// id. Each holder has its own slot, a number from 0. The unique index
// tasks_lane rejects a second holder of a slot, and freeLane uses only the
// slots below the maximum of the limit. The rates of lanes are in limit.go.

// laneHeld reports whether a task holds lane [1]. Index: tasks_lane.
var laneHeld = query(`SELECT EXISTS (SELECT 1 FROM {tasks} WHERE lane = ? AND (state = 'pending' OR state = 'running'
	OR state = 'retrying'))`)

// laneNext finds the next task of lane [1]: highest priority, then lowest id.
// Index: tasks_blocked.
var laneNext = query(`SELECT id, generation_id FROM {tasks} WHERE waits = 0 AND lane = ? ORDER BY priority DESC, id LIMIT 1`)

// laneHolders lists the tasks that hold lane [1]. Index: tasks_lane.
var laneHolders = query(`SELECT id, coalesce(lane_slot, 0) AS slot, state FROM {tasks} WHERE lane = ? AND (state = 'pending'
	OR state = 'running' OR state = 'retrying')`)

type laneHolder struct {
	ID    int64  `db:"id"`
	Slot  int64  `db:"slot"`
	State string `db:"state"`
}

// laneSet has the lanes that may have become free, in order.
type laneSet []string

func (s *laneSet) add(lane string) {
	if lane != "" && !slices.Contains(*s, lane) {
		*s = append(*s, lane)
	}
}

func (t *tx) freeLanes(lanes laneSet, now time.Time) error {
	for _, lane := range lanes {
		if err := t.freeLane(lane, now); err != nil {
			return err
		}
	}
	return nil
}

// freeLane gives the free slots of a lane to its next tasks, as far as its rate
// lets them start. It may be called at any time: it never takes the lane from a
// holder.
func (t *tx) freeLane(lane string, now time.Time) error {
	limit, err := t.laneLimit(lane)
	if err != nil {
		return err
	}

	holders, err := t.holders(lane)
	if err != nil {
		return err
	}

	taken := make(map[int64]bool, len(holders))
	for _, h := range holders {
		taken[h.Slot] = true
	}

	var slot int64 // all slots of the lane with a number below this one are taken
	for held, others := len(holders), countUnstarted(holders); held < limit.slots(); held, others = held+1, others+1 {
		var next, generation int64
		err := t.scan(laneNext, []any{lane}, &next, &generation)
		waits := err == nil
		if engine.NoRow(err) != nil {
			return err
		}
		if open, err := t.laneOpen(limit, waits, others, now); err != nil || !open || !waits {
			return err
		}

		for taken[slot] {
			slot++
		}

		if err := t.move(next, generation, move{to: jobs.Pending, slot: slot}, now); err != nil {
			return err
		}

		slot++
	}

	return nil
}

func (t *tx) holders(lane string) (holders []laneHolder, err error) {
	err = t.list(&holders, laneHolders, lane)
	return holders, err
}

// countUnstarted counts the holders that have not started yet. The token bucket
// doesn't count their starts yet.
func countUnstarted(holders []laneHolder) (n int) {
	for _, h := range holders {
		if h.State == string(jobs.Pending) {
			n++
		}
	}
	return n
}

// startHolder makes a due task that already holds its lane pending for its next
// attempt, or delays it if the rate of the lane doesn't allow a start yet.
func (t *tx) startHolder(r *row, now time.Time) error {
	limit, err := t.laneLimit(string(r.Lane))
	if err != nil {
		return err
	}

	holders := 0 // holders of the lane that have not started yet
	if limit.slots() > 1 {
		list, err := t.holders(string(r.Lane))
		if err != nil {
			return err
		}
		holders = countUnstarted(list)
	}

	if next := limit.nextStart(holders, now); !next.IsZero() {
		return t.execOne(setDue, next.UnixMilli(), r.ID, r.GenerationID)
	}

	return t.move(r.ID, r.GenerationID, move{to: jobs.Pending}, now)
}

// laneTaken reports whether a due task has to wait for its lane.
func (t *tx) laneTaken(lane string) (bool, error) {
	if lane == "" {
		return false, nil
	}

	features, err := t.features()
	// with limits the lane may have one: block the task, and let freeLane
	// decide
	if err != nil || features.limits {
		return true, err
	}

	var held bool
	err = t.scan(laneHeld, []any{lane}, &held)
	return held, err
}

// LaneHolders returns the tasks that hold a lane, by id.
func (d *DB) LaneHolders(ctx context.Context, lane string) ([]int64, error) {
	holders, err := readRows[laneHolder](ctx, d, laneHolders, lane)
	ids := make([]int64, len(holders))
	for i, h := range holders {
		ids[i] = h.ID
	}
	slices.Sort(ids)
	return ids, err
}
