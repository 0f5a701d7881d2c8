// Package transfer moves the whole content of a database to another one, such
// as from a file to a server.
package transfer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/sqltext"
	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// selectClaimed reads the id of one running task. Index: tasks_running.
var selectClaimed = sqltext.Query(`SELECT id FROM {tasks} WHERE state = 'running' LIMIT 1`)

// selectSome returns 1 if the database has a task, schedule, limit or pause,
// which a move must not overwrite, and 0 otherwise.
var selectSome = sqltext.Query(`SELECT CASE WHEN EXISTS (SELECT 1 FROM {tasks}) OR EXISTS (SELECT 1 FROM {schedules})
	OR EXISTS (SELECT 1 FROM {limits}) OR EXISTS (SELECT 1 FROM {pauses}) THEN 1 ELSE 0 END`)

// A move needs three commits, in this order:
//
//  1. The target gets all rows, and the mark engine.Incomplete, in one
//     transaction.
//  2. The source gets the mark engine.Moved. This transaction began before the
//     first one, so nobody else has written to the source since.
//  3. The target loses its mark.
//
// A mark refuses writes, so no task can ever start in both databases. A move
// that fails or is killed before the second commit leaves the source as it was,
// and the same move later clears the target and copies again. After the second
// commit only the third one is missing.
type move struct {
	from, to          *db.DB
	moved, incomplete engine.Frozen // marks of the source and of the target
	now               time.Time
	progress          func(done, of int)
	done, all         int // rows that are copied, and all rows of the source
	counts            []TableCount
}

// Check returns an error if a worker or a task of the database runs, so that it
// can't be moved. It changes nothing.
func Check(ctx context.Context, d *db.DB, now time.Time) error {
	q := engine.ReadingFrom(ctx, d.Engine())
	frozen, err := engine.ReadFrozen(q, q.Dialect)
	if err != nil {
		return d.Engine().Explain(err)
	}
	if frozen != (engine.Frozen{}) {
		return nil // Move decides what to do
	}

	return idle(q, d, now)
}

// idle returns an error if a worker is alive or a task is running.
func idle(q engine.Querier, d *db.DB, now time.Time) error {
	var name string
	var until, id int64
	if err := engine.NoRow(q.Scan(engine.SelectAtWork, []any{now.UnixMilli()}, &name, &until)); err != nil {
		return d.Engine().Explain(err)
	}
	if name != "" {
		return &jobs.Error{Kind: jobs.ErrConflict, What: "workers run on " + d.Path(), Hint: "stop them; what they run ends first",
			Why: []string{fmt.Sprintf("%s has given a sign of life; were it dead, it would be known in %v", name,
				time.UnixMilli(until).Sub(now).Round(time.Second)), "nothing was changed"}}
	}
	if err := engine.NoRow(q.Scan(selectClaimed, nil, &id)); err != nil {
		return d.Engine().Explain(err)
	}
	if id != 0 {
		return &jobs.Error{Kind: jobs.ErrConflict, Code: errcode.TaskRuns, Subject: fmt.Sprint(id),
			What: fmt.Sprintf("task %d runs in %s", id, d.Path()),
			Hint: "pause all queues, then start a worker, which takes over what died",
			Why:  []string{"its worker died, or cannot be reached", "nothing was changed"}}
	}

	return nil
}

// Move copies all rows to another database, and makes the source refuse writes
// from then on. It returns the number of rows of each table, or nil if the
// source was moved there before. It returns an error of kind ErrConflict, and
// changes nothing, if one of the databases has a worker or a running task, one
// is part of another move, or the target isn't empty. progress gets the number
// of copied rows and of all rows.
func Move(ctx context.Context, from, to *db.DB, now time.Time, progress func(done, of int)) ([]TableCount, error) {
	source, target := from.Engine().Identity(), to.Engine().Identity()
	if source == target {
		return nil, &jobs.Error{Kind: jobs.ErrInvalid, What: "both are the same database: " + from.Path()}
	}

	m := &move{from: from, to: to, moved: engine.Frozen{State: engine.Moved, Other: target},
		incomplete: engine.Frozen{State: engine.Incomplete, Other: source}, now: now, progress: progress}

	if err := from.UpdateAlone(ctx, func(q engine.Querier) error { return m.leave(ctx, q) }); err != nil {
		return nil, err
	}

	return m.counts, to.UpdateAlone(ctx, m.open)
}

// leave marks the source and fills the target, in a transaction on the source.
func (m *move) leave(ctx context.Context, q engine.Querier) error {
	is, err := engine.ReadFrozen(q, m.from.Engine().Dialect())
	switch {
	case err != nil:
		return err
	case is == m.moved:
		return nil
	case is != engine.Frozen{}:
		return is.Error(m.from.Path(), nil)
	}

	if err := idle(q, m.from, m.now); err != nil {
		return err
	}

	// On a server, the triggers of the mark lock the tables until this
	// transaction ends, also against plain SQL.
	if err := engine.Freeze(q, m.from.Engine(), m.moved); err != nil {
		return err
	}

	return m.to.UpdateAlone(ctx, func(target engine.Querier) error { return m.fill(ctx, q, target) })
}

// open removes the mark from the target, if it's still there.
func (m *move) open(q engine.Querier) error {
	is, err := engine.ReadFrozen(q, m.to.Engine().Dialect())
	if err != nil || is != m.incomplete {
		return err
	}
	return engine.Thaw(q, m.to.Engine())
}

// fill copies all rows to the target, compares both databases, and marks the
// target, in a transaction on the target.
func (m *move) fill(ctx context.Context, source, target engine.Querier) error {
	highest, err := m.from.Engine().HighestID(ctx)
	if err != nil {
		return err
	}
	if err := m.empty(target); err != nil {
		return err
	}
	if m.counts, err = count(source); err != nil {
		return err
	}

	for _, c := range m.counts {
		m.all += int(c.Rows)
	}

	for _, table := range copied {
		if err := m.copyRows(ctx, source, target, table); err != nil {
			return err
		}
	}

	if err := m.sameRows(target); err != nil {
		return err
	}
	if _, err := target.Exec(endWorkers); err != nil {
		return err
	}
	if err := m.to.Engine().RaiseIDs(ctx, target, highest); err != nil {
		return err
	}

	return engine.Freeze(target, m.to.Engine(), m.incomplete)
}

// empty removes what an earlier run of this move, or an earlier use of the
// target, has left: rows, or counters and workers. A target in use is an error.
func (m *move) empty(q engine.Querier) error {
	is, err := engine.ReadFrozen(q, m.to.Engine().Dialect())
	switch {
	case err != nil:
		return err
	case is == m.incomplete:
		if err := engine.Thaw(q, m.to.Engine()); err != nil {
			return err
		}
	case is != engine.Frozen{}:
		return is.Error(m.to.Path(), nil)
	default:
		if err := idle(q, m.to, m.now); err != nil {
			return err
		}
		var some bool
		if err := q.Scan(selectSome, nil, &some); err != nil {
			return err
		}
		if some {
			return &jobs.Error{Kind: jobs.ErrConflict, What: m.to.Path() + " holds other tasks, schedules, limits or pauses",
				Hint: "an empty database, or a new one",
				Why:  []string{"a move keeps the ids of tasks", "nothing was changed"}}
		}
	}

	for _, table := range slices.Backward(copied) {
		if _, err := q.Exec(clearRows.With(parts(table))); err != nil {
			return err
		}
	}

	return nil
}
