package db

import (
	"context"
	"strings"
	"time"

	"example.com/runner/jobs"
)

// selectMaxTimestamp returns the latest times of several kinds in the file: 0 where there is none. Each is one seek, but for the
// few workers.
var selectMaxTimestamp = query(`SELECT {greatest}(coalesce((SELECT created_at FROM {tasks} ORDER BY id DESC LIMIT 1), 0),
	coalesce((SELECT max(finished_at) FROM {tasks} WHERE finished_at IS NOT NULL), 0), coalesce((SELECT max(beat_at) FROM {workers}), 0))`)

// selectLastHeartbeat returns when any worker gave a sign of life for the last time.
var selectLastHeartbeat = query(`SELECT max(beat_at) FROM {workers}`)

// Integrity returns what is wrong with the file itself; nil if nothing is. It reads all of it.
func (d *DB) Integrity(ctx context.Context, thorough bool) ([]string, error) {
	return d.engine.Integrity(ctx, thorough)
}

// MaxTimestamp returns the latest time that anybody has written into the file.
func (d *DB) MaxTimestamp(ctx context.Context) (time.Time, error) {
	at, err := readValue[number](ctx, d, selectMaxTimestamp)
	return at.time(), err
}

// LastHeartbeat returns when a worker gave a sign of life for the last time; zero: never.
func (d *DB) LastHeartbeat(ctx context.Context) (time.Time, error) {
	at, err := readValue[number](ctx, d, selectLastHeartbeat)
	return at.time(), err
}

// Readers lists the processes that read the file at this moment and keep its log from starting afresh, where the system tells.
func (d *DB) Readers() []Process { return d.engine.Readers() }

// Foreign returns an error of kind ErrConflict when the database was moved or is not complete, and of kind ErrSchema when runner's
// tables, indexes, triggers and views are not as runner made them, or somebody has added a trigger or an index to one of them: what
// such a trigger does is done by each write of a worker. Tables, views and triggers of an application beside them are welcome.
func (d *DB) Foreign(ctx context.Context) error {
	switch text, err := d.Frozen(ctx); {
	case err != nil:
		return err
	case text != "": // by triggers of our own
		return d.frozenProblem(text, nil)
	}
	return d.engine.CheckSchema(ctx)
}

// Unclean reports whether the file was left by a process that did not close it, and is small enough to be checked before it is used.
func (d *DB) Unclean() bool { return d.engine.Unclean() }

// Damage returns a problem of kind ErrCorrupt when pages of the file are damaged.
func (d *DB) Damage(ctx context.Context) error {
	found, err := d.Integrity(ctx, false)
	if err != nil || len(found) == 0 {
		return err
	}
	return &jobs.Error{Kind: jobs.ErrCorrupt, What: "database is damaged: " + d.path,
		Why:  []string{strings.Join(found[:min(len(found), 3)], "; "), "nothing was changed"},
		Hint: "restore a backup; keep the file"}
}
