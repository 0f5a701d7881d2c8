// Package transfer moves the whole content of a database to another database, such as from a file to a server.
package transfer

import (
	"context"
	"fmt"
	"time"

	"example.com/runner/db"
	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/sqltext"
	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// selectClaimed reads the id of one running task. Index: tasks_running.
var selectClaimed = sqltext.Query(`SELECT id FROM {tasks} WHERE state = 'running' LIMIT 1`)

// selectSome returns 1 if the database has a task, schedule, limit or pause, and 0 otherwise. A migration must not overwrite such rows.
var selectSome = sqltext.Query(`SELECT CASE WHEN EXISTS (SELECT 1 FROM {tasks}) OR EXISTS (SELECT 1 FROM {schedules}) OR EXISTS (SELECT 1
	FROM {limits})
	OR EXISTS (SELECT 1 FROM {pauses}) THEN 1 ELSE 0 END`)

// Migration moves the content of one database to another database. See engine.FrozenState for its states.
type Migration struct {
	from, to *db.DB
	// states of both databases: moving and moved for the source, incomplete for the target
	moving, moved, incomplete engine.Frozen

	last    int64                         // id of the last copied task
	inserts map[string]*sqltext.Statement // for each table, the statement that adds a row
}

// Check returns an error if the database cannot be moved now. It returns nil if a migration can begin or if one has begun. It changes
// nothing.
func Check(ctx context.Context, d *db.DB, now time.Time) error {
	q := engine.ReadingFrom(ctx, d.Engine())
	frozen, err := engine.ReadFrozen(q, q.Dialect)
	if err != nil {
		return d.Engine().Explain(err)
	}
	if frozen != (engine.Frozen{}) {
		return nil // the database already belongs to a migration, and Begin decides whether this migration can continue
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

// Begin freezes both databases: from then on they reject writes. If the same migration has frozen them before, Begin continues that
// migration. The result "done" reports whether that migration is already complete. Begin returns an error of kind ErrConflict, and changes
// nothing, in three cases: one of the databases has a worker or a running task, one is part of another migration, or the target is not
// empty.
func Begin(ctx context.Context, from, to *db.DB, now time.Time) (m *Migration, done bool, err error) {
	source, target := from.Engine().Identity(), to.Engine().Identity()
	if source == target {
		return nil, false, &jobs.Error{Kind: jobs.ErrInvalid, What: "both are the same database: " + from.Path()}
	}
	m = &Migration{from: from, to: to, moving: engine.Frozen{State: engine.Moving, Other: target},
		moved: engine.Frozen{State: engine.Moved, Other: target}, incomplete: engine.Frozen{State: engine.Incomplete, Other: source},
		inserts: map[string]*sqltext.Statement{}}
	here, err := engine.ReadFrozen(engine.ReadingFrom(ctx, from.Engine()), from.Engine().Dialect())
	if err != nil {
		return nil, false, from.Engine().Explain(err)
	}
	if here != (engine.Frozen{}) && here != m.moving && here != m.moved {
		return nil, false, here.Error(from.Path(), nil)
	}
	fresh, done, err := m.freezeTarget(ctx, here, now)
	if err != nil || done || here != (engine.Frozen{}) {
		return m, done, err
	}
	err = from.UpdateAlone(ctx, func(q engine.Querier) error {
		if err := idle(q, from, now); err != nil {
			return err
		}
		return engine.Freeze(q, from.Engine(), m.moving)
	})
	if err != nil && fresh { // the source still accepts writes, for example because a worker has just started there
		// Let the target accept writes again. If that fails, the target stays empty and rejects writes. A later migration from the same
		// source can continue with it.
		_ = to.UpdateAlone(context.WithoutCancel(ctx), m.thawTarget)
	}
	return m, false, err
}

// freezeTarget begins or continues the migration on the target. The parameter "here" is the state of the source. The result "fresh" reports
// whether the target accepted writes before this call. The result "done" reports whether the migration is complete.
func (m *Migration) freezeTarget(ctx context.Context, here engine.Frozen, now time.Time) (fresh, done bool, err error) {
	e := m.to.Engine()
	err = m.to.UpdateAlone(ctx, func(q engine.Querier) error {
		is, err := engine.ReadFrozen(q, e.Dialect())
		fresh = is == engine.Frozen{}
		switch {
		case err != nil:
			return err
		case fresh && here == m.moved:
			done = true
			return nil
		case !fresh && is != m.incomplete:
			return is.Error(m.to.Path(), nil)
		}
		if fresh {
			if err := idle(q, m.to, now); err != nil {
				return err
			}
		}
		var some bool
		if err := q.Scan(selectSome, nil, &some); err != nil {
			return err
		}
		if some && (fresh || here == engine.Frozen{}) {
			return &jobs.Error{Kind: jobs.ErrConflict, What: m.to.Path() + " holds other tasks, schedules, limits or pauses",
				Hint: "an empty database, or a new one",
				Why:  []string{"a move keeps the ids of tasks", "nothing was changed"}}
		}
		if err := q.Scan(selectLastID, nil, &m.last); err != nil {
			return err
		}
		return engine.Freeze(q, e, m.incomplete)
	})
	return fresh, done, err
}

// thawTarget makes the target accept writes in the transaction q, so that the migration can write to it. It returns an error if another
// process has changed the state of the migration.
func (m *Migration) thawTarget(q engine.Querier) error {
	e := m.to.Engine()
	is, err := engine.ReadFrozen(q, e.Dialect())
	if err != nil {
		return err
	}
	if is != m.incomplete {
		return &jobs.Error{Kind: jobs.ErrConflict, What: "somebody else has ended this move",
			Why: []string{m.to.Path() + " is not as it was left a moment ago"}}
	}
	return engine.Thaw(q, e)
}

// Left returns the number of tasks that are not copied yet.
func (m *Migration) Left(ctx context.Context) (n int64, err error) {
	err = m.source(ctx).Scan(countLeft, []any{m.last}, &n)
	return n, m.from.Engine().Explain(err)
}

// source returns a Querier that reads the source of the migration.
func (m *Migration) source(ctx context.Context) engine.Querier {
	return engine.ReadingFrom(ctx, m.from.Engine())
}

// Step copies the next tasks with their rows in other tables. It returns the number of copied tasks, or 0 if none are left.
func (m *Migration) Step(ctx context.Context) (int, error) {
	var ids []int64
	if err := m.source(ctx).List(&ids, selectNextIDs, m.last, copyTasks); err != nil || len(ids) == 0 {
		return 0, m.from.Engine().Explain(err)
	}
	next := ids[len(ids)-1]
	err := m.to.UpdateAlone(ctx, func(q engine.Querier) error {
		if err := m.thawTarget(q); err != nil {
			return err
		}
		var at int64
		if err := q.Scan(selectLastID, nil, &at); err != nil {
			return err
		}
		if at != m.last {
			return &jobs.Error{Kind: jobs.ErrConflict, What: "somebody else moves " + m.from.Path(),
				Why: []string{m.to.Path() + " has other tasks than a moment ago"}}
		}
		for _, c := range copiedTables {
			if c.key == "" {
				continue
			}
			if err := m.copyRows(ctx, q, c, m.last, next); err != nil {
				return err
			}
		}
		return engine.Freeze(q, m.to.Engine(), m.incomplete)
	})
	if err != nil {
		return 0, err
	}
	m.last = next
	return len(ids), nil
}

// End copies the tables whose rows do not belong to single tasks, compares both databases, and completes the migration. From then on the
// tasks run on the target, and never again on the source. It returns the number of rows of each table.
func (m *Migration) End(ctx context.Context) (counts []TableCount, err error) {
	highest, err := m.from.Engine().HighestID(ctx)
	if err != nil {
		return nil, err
	}
	err = m.to.UpdateAlone(ctx, func(q engine.Querier) error {
		if err := m.thawTarget(q); err != nil {
			return err
		}
		for _, c := range copiedTables {
			if c.key != "" {
				continue
			}
			// The target may have counters and workers from earlier use.
			if _, err := q.Exec(clearRows.With(c.parts())); err != nil {
				return err
			}
			if err := m.copyRows(ctx, q, c, 0, 0); err != nil {
				return err
			}
		}
		var err error
		if counts, err = m.sameRows(ctx, q); err != nil {
			return err
		}
		if _, err := q.Exec(endWorkers); err != nil {
			return err
		}
		if err := m.to.Engine().RaiseIDs(ctx, q, highest); err != nil {
			return err
		}
		return m.from.UpdateAlone(ctx, m.endSource) // the transaction on the source must commit before the one on the target
	})
	return counts, err
}

// endSource records in the source that the migration is complete.
func (m *Migration) endSource(q engine.Querier) error {
	e := m.from.Engine()
	is, err := engine.ReadFrozen(q, e.Dialect())
	if err != nil {
		return err
	}
	if is != m.moving && is != m.moved {
		return &jobs.Error{Kind: jobs.ErrConflict, What: "this move was given up by somebody else",
			Why: []string{m.from.Path() + " is used again"}}
	}
	return engine.Freeze(q, e, m.moved)
}

// Undo gives up a migration that has not ended: its source accepts writes again. If the migration is complete, Undo returns an error of
// kind ErrConflict, because the tasks run on the target.
func Undo(ctx context.Context, d *db.DB) error {
	return d.UpdateAlone(ctx, func(q engine.Querier) error {
		is, err := engine.ReadFrozen(q, d.Engine().Dialect())
		switch {
		case err != nil:
			return err
		case is == engine.Frozen{}:
			return &jobs.Error{Kind: jobs.ErrConflict, What: d.Path() + " is not being moved"}
		case is.State != engine.Moving:
			return is.Error(d.Path(), nil)
		}
		return engine.Thaw(q, d.Engine())
	})
}
