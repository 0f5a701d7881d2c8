package db

import (
	"context"
	"fmt"
	"strings"
	"time"

	"example.com/runner/db/internal/engine"
	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// selectClaimed reads the id of one running task. Index: tasks_running.
var selectClaimed = query(`SELECT id FROM {tasks} WHERE state = 'running' LIMIT 1`)

// selectSome returns 1 if the database has a task, schedule, limit or pause, which a migration must not overwrite; else 0.
var selectSome = query(`SELECT CASE WHEN EXISTS (SELECT 1 FROM {tasks}) OR EXISTS (SELECT 1 FROM {schedules}) OR EXISTS (SELECT 1
	FROM {limits})
	OR EXISTS (SELECT 1 FROM {pauses}) THEN 1 ELSE 0 END`)

// Migration moves the whole content of one database to another database.
type Migration struct {
	from, to *DB
	text     struct{ moving, moved, incomplete string }
	last     int64 // id of the last copied task
	// inserts maps the name of a table to the statement that adds a row to it.
	inserts map[string]*statement
}

// MayMigrate returns an error if the database cannot be moved now. It returns nil if a migration can begin or if one has begun. It
// changes nothing.
func (d *DB) MayMigrate(ctx context.Context, now time.Time) error {
	text, err := d.Frozen(ctx)
	if err != nil || text != "" {
		return err // BeginMigration decides whether a frozen database can be moved
	}
	return d.idle(func(s *statement, dest []any, args ...any) error {
		return engine.NoRow(d.read.QueryRowxContext(ctx, d.sql.Text(s), args...).Scan(dest...))
	}, now)
}

// idle returns an error if a worker is alive or a task is running.
func (d *DB) idle(scan func(s *statement, dest []any, args ...any) error, now time.Time) error {
	var name string
	var until, id number
	if err := scan(engine.SelectAtWork, []any{&name, &until}, now.UnixMilli()); err != nil {
		return d.explain(err)
	}
	if name != "" {
		return &jobs.Error{Kind: jobs.ErrConflict, What: "workers run on " + d.path, Hint: "stop them; what they run ends first",
			Why: []string{fmt.Sprintf("%s has given a sign of life; were it dead, it would be known in %v", name,
				until.time().Sub(now).Round(time.Second)), "nothing was changed"}}
	}
	if err := scan(selectClaimed, []any{&id}); err != nil {
		return d.explain(err)
	}
	if id != 0 {
		return &jobs.Error{Kind: jobs.ErrConflict, Code: errcode.TaskRuns, Subject: fmt.Sprint(int64(id)),
			What: fmt.Sprintf("task %d runs in %s", int64(id), d.path),
			Hint: "pause all queues, then start a worker, which takes over what died",
			Why:  []string{"its worker died, or cannot be reached", "nothing was changed"}}
	}
	return nil
}

// BeginMigration freezes both databases. If the same migration has frozen them before, it continues that migration. done reports whether
// that migration is complete already. BeginMigration returns an error of kind ErrConflict, and changes nothing, in three cases: one of
// the databases is at work, one is part of another migration, or the target is not empty.
func (d *DB) BeginMigration(ctx context.Context, to *DB, now time.Time) (m *Migration, done bool, err error) {
	if d.engine.Identity() == to.engine.Identity() {
		return nil, false, &jobs.Error{Kind: jobs.ErrInvalid, What: "both are the same database: " + d.path}
	}
	m = &Migration{from: d, to: to, inserts: map[string]*statement{}}
	m.text.moving, m.text.moved, m.text.incomplete = fmt.Sprintf(movingText, to.engine.Identity()),
		fmt.Sprintf(movedText, to.engine.Identity()), fmt.Sprintf(incompleteText, d.engine.Identity())
	here, err := d.Frozen(ctx)
	if err != nil {
		return nil, false, err
	}
	if here != "" && here != m.text.moving && here != m.text.moved {
		return nil, false, d.frozenProblem(here, nil)
	}
	fresh := false
	err = to.updateAlone(ctx, full, func(t *tx) error {
		is, err := t.frozen()
		switch {
		case err != nil:
			return err
		case is == "" && here == m.text.moved:
			done = true
			return nil
		case is != "" && is != m.text.incomplete:
			return to.frozenProblem(is, nil)
		}
		if is == "" {
			if err := to.idle(t.noRow, now); err != nil {
				return err
			}
		}
		var some bool
		if err := t.scan(selectSome, nil, &some); err != nil {
			return err
		}
		if some && (is == "" || here == "") {
			return &jobs.Error{Kind: jobs.ErrConflict, What: to.path + " holds other tasks, schedules, limits or pauses",
				Hint: "an empty database, or a new one",
				Why:  []string{"a move keeps the ids of tasks", "nothing was changed"}}
		}
		fresh = is == ""
		if err := t.scan(selectLastID, nil, &m.last); err != nil {
			return err
		}
		return t.freeze(m.text.incomplete)
	})
	if err != nil || done || here != "" {
		return m, done, err
	}
	err = d.updateAlone(ctx, full, func(t *tx) error {
		if err := d.idle(t.noRow, now); err != nil {
			return err
		}
		return t.freeze(m.text.moving)
	})
	if err != nil && fresh { // a worker has started in the meantime
		// If this thaw fails, the next migration finds the target frozen but empty.
		_ = to.updateAlone(context.WithoutCancel(ctx), full, func(t *tx) error { return t.thaw(m.text.incomplete) })
	}
	return m, false, err
}

func (t *tx) noRow(s *statement, dest []any, args ...any) error {
	return engine.NoRow(t.scan(s, args, dest...))
}

// Left returns the number of tasks that are not copied yet.
func (m *Migration) Left(ctx context.Context) (int64, error) {
	return readValue[int64](ctx, m.from, countLeft, m.last)
}

// Step copies the next tasks with their rows in other tables. It returns the number of copied tasks, or 0 if none are left.
func (m *Migration) Step(ctx context.Context) (int, error) {
	ids, err := readRows[int64](ctx, m.from, selectNextIDs, m.last, copyTasks)
	if err != nil || len(ids) == 0 {
		return 0, err
	}
	next := ids[len(ids)-1]
	err = m.to.updateAlone(ctx, full, func(t *tx) error {
		if err := t.thaw(m.text.incomplete); err != nil {
			return err
		}
		var at int64
		if err := t.scan(selectLastID, nil, &at); err != nil {
			return err
		}
		if at != m.last {
			return &jobs.Error{Kind: jobs.ErrConflict, What: "somebody else moves " + m.from.path,
				Why: []string{m.to.path + " has other tasks than a moment ago"}}
		}
		for _, c := range copiedTables {
			if c.key == "" {
				continue
			}
			if err := t.copyRows(m, c, m.last, next); err != nil {
				return err
			}
		}
		return t.freeze(m.text.incomplete)
	})
	if err != nil {
		return 0, err
	}
	m.last = next
	return len(ids), nil
}

// End copies the tables whose rows do not belong to single tasks, compares both databases, and completes the migration: from now on the
// tasks run on the target, and never again on the source. It returns the number of rows of each table.
func (m *Migration) End(ctx context.Context) (counts []TableCount, err error) {
	highest, err := m.from.engine.HighestID(ctx)
	if err != nil {
		return nil, err
	}
	err = m.to.updateAlone(ctx, full, func(t *tx) error {
		if err := t.thaw(m.text.incomplete); err != nil {
			return err
		}
		for _, c := range copiedTables {
			if c.key != "" {
				continue
			}
			// The target may have counters and workers from earlier use.
			if err := t.run(clearRows.With(c.parts())); err != nil {
				return err
			}
			if err := t.copyRows(m, c, 0, 0); err != nil {
				return err
			}
		}
		var err error
		if counts, err = t.sameRows(m.from); err != nil {
			return err
		}
		if err := t.run(endWorkers); err != nil {
			return err
		}
		if err := t.db.engine.RaiseIDs(t.ctx, querier{t}, highest); err != nil {
			return err
		}
		return m.from.updateAlone(ctx, full, func(t *tx) error { // the target commits only after this commit of the source
			is, err := t.frozen()
			if err == nil && is != m.text.moving && is != m.text.moved {
				err = &jobs.Error{Kind: jobs.ErrConflict, What: "this move was given up by somebody else",
					Why: []string{m.from.path + " is used again"}}
			}
			if err != nil {
				return err
			}
			return t.freeze(m.text.moved)
		})
	})
	return counts, err
}

// UndoMigration thaws a database whose migration has not ended. If the migration is complete, it returns an error of kind ErrConflict,
// because the tasks run on the target.
func (d *DB) UndoMigration(ctx context.Context) error {
	return d.updateAlone(ctx, full, func(t *tx) error {
		is, err := t.frozen()
		switch {
		case err != nil:
			return err
		case is == "":
			return &jobs.Error{Kind: jobs.ErrConflict, What: d.path + " is not being moved"}
		case !strings.HasPrefix(is, strings.TrimSuffix(movingText, "%s")):
			return d.frozenProblem(is, nil)
		}
		return t.freeze("")
	})
}
