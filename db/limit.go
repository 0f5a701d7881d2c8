package db

import (
	"context"
	"time"

	"example.com/runner/jobs"
)

const limitColumns = `kind, name, running, rate, per, burst, level, filled_at, due_at, updated_at`

// selectAdmission reads the limits of queues and jobs; selectLimit one limit; selectLimits all of them, for people. Primary key.
var (
	selectAdmission = query(`SELECT ` + limitColumns + ` FROM {limits} WHERE kind = 'queue' OR kind = 'job'`)
	selectLimit     = query(`SELECT ` + limitColumns + ` FROM {limits} WHERE kind = ? AND name = ?`)
	selectLimits    = query(`SELECT ` + limitColumns + ` FROM {limits} ORDER BY kind, name`)
)

// saveBucket keeps what is left of the rate of limit [3], [4]: level [1] at [2].
var saveBucket = command(`UPDATE {limits} SET level = ?, filled_at = ? WHERE kind = ? AND name = ?`)

// setLimit adds a limit or replaces one.
var setLimit = command(`INSERT INTO {limits} (kind, name, running, rate, per, burst, level, filled_at, updated_at)
	VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (kind, name) DO UPDATE SET running = excluded.running, rate = excluded.rate, per = excluded.per, burst = excluded.burst,
	level = excluded.level, filled_at = excluded.filled_at, updated_at = excluded.updated_at`)

var removeLimit = command(`DELETE FROM {limits} WHERE kind = ? AND name = ?`)

// setLaneDue says when the rate of lane [2] lets its next task start [1]; NULL: nothing waits for it.
var setLaneDue = command(`UPDATE {limits} SET due_at = ? WHERE kind = 'lane' AND name = ?`)

// clearLaneDue takes from lane [2] the time that has come at [1], and from other limits of that name, to which only plain SQL gives
// one: they would be looked at for ever. Index: limits_due.
var clearLaneDue = command(`UPDATE {limits} SET due_at = NULL WHERE due_at <= ? AND name = ?`)

// selectFreeLanes lists lanes whose rate lets a task start at [1]. Index: limits_due.
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

func (r *limitRow) limit() jobs.Limit {
	return jobs.Limit{Target: jobs.Target{Kind: r.Kind, Name: r.Name}, Running: int(r.Running), Rate: int(r.Rate), Per: r.Per.duration(),
		Burst: int(r.Burst)}
}

func (r *limitRow) bucket() bucket {
	return bucket{level: r.Level, at: time.UnixMilli(r.FilledAt)}
}

func (t *tx) saveBucket(target jobs.Target, b bucket) error {
	return t.run(saveBucket, b.level, b.at.UnixMilli(), target.Kind, target.Name)
}

func (t *tx) limitOf(target jobs.Target) (*limitRow, error) {
	var rows []limitRow
	if err := t.list(&rows, selectLimit, target.Kind, target.Name); err != nil || len(rows) == 0 {
		return nil, err
	}
	return &rows[0], nil
}

// laneRate returns the limit of a lane (nil: there is none), and when its rate lets a task start; zero: now.
func (t *tx) laneRate(lane string, now time.Time) (r *limitRow, next time.Time, err error) {
	features, err := t.features()
	if err != nil || !features.limits {
		return nil, next, err
	}
	r, err = t.limitOf(jobs.Target{Kind: jobs.LaneTarget, Name: lane})
	if r != nil {
		_, next = r.bucket().starts(r.limit(), now)
	}
	return r, next, err
}

// laneOpen says whether the rate of a lane that nobody has lets a task start, and keeps when it will if one waits for that.
func (t *tx) laneOpen(lane string, waits bool, now time.Time) (bool, error) {
	r, next, err := t.laneRate(lane, now)
	if err != nil || r == nil {
		return true, err
	}
	if !waits {
		next = time.Time{}
	}
	if r.DueAt.time().Equal(next) {
		return next.IsZero(), nil
	}
	t.moved = true // there is a new time to wait for
	err = t.run(setLaneDue, nullTime(next), lane)
	return next.IsZero(), err
}

// takeLaneRate counts a start in a lane. After a loss there may be none left: then one is owed.
func (t *tx) takeLaneRate(lane string, now time.Time) error {
	target := jobs.Target{Kind: jobs.LaneTarget, Name: lane}
	r, err := t.limitOf(target)
	if err != nil || r == nil {
		return err
	}
	return t.saveBucket(target, r.bucket().take(r.limit(), 1, now))
}

// freeDueLanes looks at the lanes whose rate lets a task start now.
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

// LimitStat is a limit and how it stands.
type LimitStat struct {
	jobs.Limit
	InUse     int       // tasks of the target that run
	NextAt    time.Time // when the rate lets the next task start; zero: now, or there is no rate
	UpdatedAt time.Time
}

// SetLimit adds a limit, or replaces the one of its target. Setting the same one again changes nothing. It holds for the next claim.
func (d *DB) SetLimit(ctx context.Context, l jobs.Limit, now time.Time) error {
	return d.update(ctx, full, func(t *tx) error {
		old, err := t.limitOf(l.Target)
		if err != nil || old != nil && old.limit() == l {
			return err
		}
		b := fullBucket(l, now)
		if old != nil && l.Rate > 0 {
			b = old.bucket().carry(old.limit(), l, now)
		}
		t.used.known = false
		err = t.run(setLimit, l.Kind, l.Name, nullNumber(l.Running), nullNumber(l.Rate), nullNumber(millis(l.Per)), nullNumber(l.Burst),
			b.level, now.UnixMilli(), now.UnixMilli())
		if err == nil && l.Kind == jobs.LaneTarget {
			err = t.freeLane(l.Name, now)
		}
		return err
	})
}

// RemoveLimit removes the limit of a target. It returns false if there is none.
func (d *DB) RemoveLimit(ctx context.Context, target jobs.Target, now time.Time) (bool, error) {
	return updateAs(ctx, d, full, func(t *tx) (bool, error) {
		n, err := t.exec(removeLimit, target.Kind, target.Name)
		t.used.known = false
		if n > 0 && target.Kind == jobs.LaneTarget {
			err = t.freeLane(target.Name, now)
		}
		return n > 0, err
	})
}

// Limits lists all limits, by kind and name.
func (d *DB) Limits(ctx context.Context, now time.Time) ([]LimitStat, error) {
	rows, err := readRows[limitRow](ctx, d, selectLimits)
	if err != nil || len(rows) == 0 {
		return nil, err
	}
	running, err := readRows[countRow](ctx, d, countStarted)
	if err != nil {
		return nil, err
	}
	stats := make([]LimitStat, len(rows))
	for i := range rows {
		s := LimitStat{Limit: rows[i].limit(), UpdatedAt: rows[i].UpdatedAt.time()}
		_, s.NextAt = rows[i].bucket().starts(s.Limit, now)
		for _, r := range running {
			if s.Kind == jobs.QueueTarget && s.Name == r.Queue || s.Kind == jobs.JobTarget && s.Name == r.Job {
				s.InUse += r.N
			}
		}
		if s.Kind == jobs.LaneTarget {
			if s.InUse, err = readValue[int](ctx, d, laneRunning, s.Name); err != nil {
				return nil, err
			}
		}
		stats[i] = s
	}
	return stats, nil
}

// laneRunning counts what runs in lane [1]: one task or none. Index: tasks_lane.
var laneRunning = query(`SELECT count(*) FROM {tasks} WHERE lane = ? AND (state = 'pending' OR state = 'running' OR state = 'retrying')
	AND state = 'running'`)
