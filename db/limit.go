package db

import (
	"context"
	"time"
)

// A limit belongs to a queue, a job, a lane or the whole database. It says how
// many tasks may run at a time, and how many may start in a period (a token
// bucket, see bucket.go). This file stores limits, and applies the rates of
// lanes. A claim applies all other limits (see admission.go).

const limitColumns = `kind, name, running, rate, per, burst, level, filled_at, due_at, updated_at`

// selectAdmission reads all limits but those of lanes. All three use the
// primary key.
var (
	selectAdmission = query(`SELECT ` + limitColumns + ` FROM {limits} WHERE kind = 'queue' OR kind = 'job'
		OR kind = 'all'`)
	selectLimit  = query(`SELECT ` + limitColumns + ` FROM {limits} WHERE kind = ? AND name = ?`)
	selectLimits = query(`SELECT ` + limitColumns + ` FROM {limits} ORDER BY kind, name`)
)

// saveBucket stores that the bucket of limit [3], [4] has the level [1] at time
// [2].
var saveBucket = command(`UPDATE {limits} SET level = ?, filled_at = ? WHERE kind = ? AND name = ?`)

var setLimit = command(`INSERT INTO {limits} (kind, name, running, rate, per, burst, level, filled_at, updated_at)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (kind, name) DO UPDATE SET running = excluded.running, rate = excluded.rate, per = excluded.per, burst = excluded.burst,
	level = excluded.level, filled_at = excluded.filled_at, updated_at = excluded.updated_at`)

var removeLimit = command(`DELETE FROM {limits} WHERE kind = ? AND name = ?`)

// setLaneDue sets when the rate of lane [2] lets its next task start; NULL if
// none waits.
var setLaneDue = command(`UPDATE {limits} SET due_at = ? WHERE kind = 'lane' AND name = ?`)

// clearLaneDue clears the due time of lane [2] if it's [1] or earlier, and one
// that plain SQL has set for a queue or job with the same name: otherwise
// selectFreeLanes would return the name again and again. Index: limits_due.
var clearLaneDue = command(`UPDATE {limits} SET due_at = NULL WHERE due_at <= ? AND name = ?`)

// selectFreeLanes lists up to 1000 lanes whose rate lets a task start at [1].
// Index: limits_due.
var selectFreeLanes = query(`SELECT name FROM {limits} WHERE due_at <= ? LIMIT 1000`)

type limitRow struct {
	Kind      string `db:"kind"`
	Name      string `db:"name"`
	Running   number `db:"running"`
	Rate      number `db:"rate"`
	Per       number `db:"per"`
	Burst     number `db:"burst"`
	Level     int64  `db:"level"`
	FilledAt  int64  `db:"filled_at"`
	DueAt     number `db:"due_at"`
	UpdatedAt number `db:"updated_at"`
}

func (r *limitRow) limit() Limit {
	return Limit{Target: Target{Kind: TargetKind(r.Kind), Name: r.Name}, Running: int(r.Running), Rate: int(r.Rate), Per: r.Per.duration(),
		Burst: int(r.Burst)}
}

func (r *limitRow) bucket() bucket {
	return bucket{level: r.Level, at: time.UnixMilli(r.FilledAt)}
}

func (t *tx) saveBucket(target Target, b bucket) error {
	return t.run(saveBucket, b.level, b.at.UnixMilli(), string(target.Kind), target.Name)
}

func (t *tx) limitOf(target Target) (*limitRow, error) {
	var rows []limitRow
	if err := t.list(&rows, selectLimit, string(target.Kind), target.Name); err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// laneLimit returns the limit of a lane, or nil.
func (t *tx) laneLimit(lane string) (*limitRow, error) {
	features, err := t.features()
	if err != nil || !features.limits {
		return nil, err
	}
	return t.limitOf(Target{Kind: LaneTarget, Name: lane})
}

// slots is how many tasks may hold a lane with this limit: 1 for nil.
func (r *limitRow) slots() int {
	if r == nil {
		return 1
	}
	return max(int(r.Running), 1)
}

// nextStart returns when the rate lets one more task start after others that
// start before it; zero if now.
func (r *limitRow) nextStart(others int, now time.Time) (next time.Time) {
	if r != nil && r.Rate > 0 {
		_, next = r.bucket().take(r.limit(), others, now).starts(r.limit(), now)
	}
	return next
}

// laneOpen reports whether the rate of a lane lets its next task start now,
// after others that start before it. If not, it stores when the task can start.
// If no task waits, it clears that time and returns true.
func (t *tx) laneOpen(r *limitRow, waits bool, others int, now time.Time) (bool, error) {
	if r == nil {
		return true, nil
	}

	next := time.Time{}
	if waits {
		next = r.nextStart(others, now)
	}
	if r.DueAt.time().Equal(next) {
		return next.IsZero(), nil
	}

	t.released = true // so that the worker reads the new time of the next start
	err := t.run(setLaneDue, nullTime(next), r.Name)
	r.DueAt = 0 // wrong if a time was stored, but then the caller doesn't use r again
	return next.IsZero(), err
}

// takeLaneRate takes a start from the bucket of a lane. A lost task keeps its
// lane, so it may start again although the rate allows none. Then the level
// goes negative.
func (t *tx) takeLaneRate(lane string, now time.Time) error {
	target := Target{Kind: LaneTarget, Name: lane}
	r, err := t.limitOf(target)
	if err != nil || r == nil || r.Rate == 0 {
		return err
	}
	return t.saveBucket(target, r.bucket().take(r.limit(), 1, now))
}

func (t *tx) freeDueLanes(now time.Time) error {
	var lanes []string
	if err := t.list(&lanes, selectFreeLanes, now.UnixMilli()); err != nil {
		return err
	}

	for _, lane := range lanes {
		if err := t.run(clearLaneDue, now.UnixMilli(), lane); err != nil {
			return err
		}
		if err := t.freeLane(lane, now); err != nil {
			return err
		}
	}

	return nil
}

// SetLimit adds a limit, or replaces that of the same target. It applies from
// the next claim on.
func (d *DB) SetLimit(ctx context.Context, l Limit, now time.Time) error {
	return d.update(ctx, full, func(t *tx) error {
		old, err := t.limitOf(l.Target)
		if err != nil || old != nil && old.limit() == l {
			return err
		}

		t.used.known = false
		err = t.run(setLimit, string(l.Kind), l.Name, nullNumber(l.Running), nullNumber(l.Rate), nullNumber(millis(l.Per)),
			nullNumber(l.Burst), fullBucket(l, now).level, now.UnixMilli(), now.UnixMilli())
		if err == nil && l.Kind == LaneTarget {
			err = t.freeLane(l.Name, now)
		}
		return err
	})
}

// RemoveLimit removes the limit of a target, and reports whether there was one.
func (d *DB) RemoveLimit(ctx context.Context, target Target, now time.Time) (bool, error) {
	return updateAs(ctx, d, full, func(t *tx) (bool, error) {
		n, err := t.exec(removeLimit, string(target.Kind), target.Name)
		t.used.known = false
		if n > 0 && target.Kind == LaneTarget {
			err = t.freeLane(target.Name, now)
		}
		return n > 0, err
	})
}

// Limits lists all limits with their present use, ordered by kind and name.
func (d *DB) Limits(ctx context.Context, now time.Time) ([]LimitStatus, error) {
	rows, err := readRows[limitRow](ctx, d, selectLimits)
	if err != nil || len(rows) == 0 {
		return nil, err
	}

	running, err := readRows[countRow](ctx, d, countStarted)
	if err != nil {
		return nil, err
	}

	states := limitStates(rows, running, now)
	list := make([]LimitStatus, len(rows))
	for i := range rows {
		s := &list[i]
		*s = states[rows[i].limit().Target].LimitStatus
		if s.Kind != LaneTarget {
			continue
		}
		if s.InUse, err = readValue[int](ctx, d, laneRunning, s.Name); err != nil {
			return nil, err
		}
	}

	return list, nil
}

// laneRunning counts the running tasks of lane [1]. Index: tasks_lane.
var laneRunning = query(`SELECT count(*) FROM {tasks} WHERE lane = ? AND (state = 'pending' OR state = 'running' OR state = 'retrying')
	AND state = 'running'`)
