package db

import (
	"cmp"
	"context"
	"time"

	"example.com/runner/db/internal/engine"
)

// selectMaxTimestamp returns the latest of three times, or 0: the creation of
// the newest task, the last end and the last heartbeat. Two index seeks find
// those of tasks; the table of workers is small.
var selectMaxTimestamp = query(`SELECT {greatest}(coalesce((SELECT created_at FROM {tasks} ORDER BY id DESC LIMIT 1), 0),
	coalesce((SELECT max(finished_at) FROM {tasks} WHERE finished_at IS NOT NULL), 0), coalesce((SELECT max(beat_at) FROM {workers}), 0))`)

var selectLastHeartbeat = query(`SELECT max(beat_at) FROM {workers}`)

// MaxTimestamp returns the latest of three times: the creation of the newest
// task, the last end of a task, and the last heartbeat.
func (d *DB) MaxTimestamp(ctx context.Context) (time.Time, error) {
	at, err := readValue[number](ctx, d, selectMaxTimestamp)
	return at.time(), err
}

// LastHeartbeat returns the time of the last heartbeat of any worker; zero if
// there was none.
func (d *DB) LastHeartbeat(ctx context.Context) (time.Time, error) {
	at, err := readValue[number](ctx, d, selectLastHeartbeat)
	return at.time(), err
}

// Foreign returns an error of kind ErrConflict if the database was moved or is
// incomplete, and of kind ErrSchema if somebody has changed runner's tables,
// indexes, triggers or views, or has added a trigger or an index to one of the
// tables: each write of a worker would run such a trigger. Other tables, views
// and triggers in the same file are fine.
func (d *DB) Foreign(ctx context.Context) error {
	switch frozen, err := d.frozen(ctx); {
	case err != nil:
		return d.explainRead(ctx, err)
	case frozen != (engine.Frozen{}):
		// Without this case, CheckSchema would report the triggers that a moved
		// or incomplete database uses to reject writes.
		return frozen.Error(d.path, nil)
	}
	return causeOf(ctx, d.engine.CheckSchema(ctx))
}

// frozen returns why the database rejects writes; the zero value if it doesn't.
func (d *DB) frozen(ctx context.Context) (engine.Frozen, error) {
	return engine.ReadFrozen(engine.ReadingFrom(ctx, d.engine), d.sql)
}

// Frozen says where the database was moved to, or from where a move to it has
// not ended. It's empty for other databases.
func (d *DB) Frozen(ctx context.Context) (string, error) {
	frozen, err := d.frozen(ctx)
	if err != nil || frozen == (engine.Frozen{}) {
		return "", d.explainRead(ctx, err)
	}
	return frozen.Message(), nil
}

// refused explains the error of a failed write. The triggers of a moved or
// incomplete database reject all writes, and the new error says so.
func (d *DB) refused(err error) error {
	if d.engine.Refused(err) {
		if frozen, _ := d.frozen(context.Background()); frozen != (engine.Frozen{}) {
			return frozen.Error(d.path, err)
		}
	}
	return d.explain(err)
}

// Damage returns an error of kind ErrCorrupt if pages of the file are damaged.
func (d *DB) Damage(ctx context.Context) error {
	found, err := d.Integrity(ctx, false)
	return cmp.Or(err, engine.Damaged(d.path, found))
}
