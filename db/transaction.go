package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/jmoiron/sqlx"

	"example.com/runner/jobs"
	commands "example.com/runner/jobs/command"
)

// This file runs the transaction of a group, and the statements in it. A group
// is a set of writes by several callers, its members; see commit.go. The rule
// for errors is the difficult part, because a wrong error makes a caller repeat
// a write that was committed, or trust one that was not:
//   - If the write of a member fails, the transaction is rolled back, and the
//     result is a *memberError. The writes of the members then run one by one.
//   - If BEGIN or the check of the files fails, nothing was written. Every
//     member gets the error of the failed step. If BEGIN failed only because
//     the context of one caller has ended, the others wait for the next
//     transaction.
//   - If the connection breaks after COMMIT was sent, the result is unknown.
//     All members get an error that says so (Unanswered).
//   - After an error that may have broken the connection, the writer is marked
//     as broken. The next transaction opens a new connection.
//
// After the commit, the writer checks whether somebody has replaced the
// database file, because other processes would not see a commit in the old
// file.
//
// A tx can also run in a transaction of the caller (outer). It then doesn't
// prepare its statements, and neither begins nor commits.

// memberError is the error of one write in a group, whose transaction was
// rolled back.
type memberError struct{ err error }

func (e *memberError) Error() string { return e.err.Error() }

func (e *memberError) Unwrap() error { return e.err }

// transaction runs all writes of a group in one transaction. If one fails, it
// rolls all of them back and returns a *memberError.
func (w *writer) transaction(group []*request, leader *request) (err error) {
	ctx := context.Background()
	if w.broken {
		if err := w.reopen(ctx); err != nil {
			return err
		}
	}

	committing := false
	defer func() {
		if w.broken = w.db.engine.Broken(err); w.broken && committing {
			err = w.db.engine.Unanswered(err)
		}
	}()

	to := normal
	for _, r := range group {
		to = max(to, r.level)
	}

	if err := w.setLevel(ctx, to); err != nil {
		return w.db.explain(err)
	}

	t := &tx{w: w, ctx: ctx, db: w.db}
	if len(group) == 1 && group[0].single != nil && w.db.traits.SingleStatements && !w.mustLook() {
		if done, err := w.runSingle(t, group[0]); done {
			return err
		}
	}
	if err := w.begin(t, group, leader); errors.Is(err, errEnded) {
		return err
	} else if err != nil {
		return w.db.explain(err)
	}
	if err := w.lookBefore(); err != nil {
		w.rollback(t)
		return err
	}

	wakeups := false
	for i, r := range group {
		t.last, t.wakeups = i == len(group)-1, true
		var err error
		if !r.adds {
			err = t.inserts.flush(false)
		}
		if err == nil {
			err = r.call(w, t)
		}
		if err == nil && t.last {
			err = t.inserts.flush(true)
		}
		if err != nil {
			w.rollback(t)
			committing = t.committed
			if err := w.db.engine.BeginFailed(err); err != nil {
				return err
			}
			return &memberError{w.db.refused(err)}
		}

		wakeups = wakeups || t.wakeups
	}

	committing = true
	if err := w.end(t); err != nil {
		return err
	}
	if err := w.lookAfter(t.changed); err != nil {
		return err
	}
	if t.changed {
		w.db.engine.Notify(wakeups)
	}

	return nil
}

// runSingle runs a write that is alone in its group as a single statement
// without BEGIN and COMMIT. done is false if another process holds the lock.
// Then nothing was written, and the write needs a transaction, which waits for
// the lock and then checks the files.
func (w *writer) runSingle(t *tx, r *request) (done bool, err error) {
	err = r.single(t)
	switch {
	case err == nil:
		return true, w.lookAfter(true)
	case w.db.engine.Busy(err):
		return false, nil
	}

	return true, &memberError{w.db.refused(err)}
}

// end commits a transaction, unless its last statement already has.
func (w *writer) end(t *tx) error {
	if t.committed {
		return nil
	}
	if _, err := t.exec(commit); err != nil {
		w.rollback(t)
		return w.db.explain(err)
	}
	return nil
}

// reopen replaces a broken connection. After an I/O error, a new file
// descriptor may work.
func (w *writer) reopen(ctx context.Context) error {
	d := w.db
	if err := d.Replaced(); err != nil {
		return err
	}

	w.closeConn()
	conn, err := d.engine.Reconnect(ctx)
	if err != nil {
		return err
	}

	w.open(conn)
	w.broken = false
	return nil
}

func (w *writer) closeConn() {
	for _, stmt := range w.stmts {
		stmt.Close()
	}

	clear(w.stmts)
	if w.conn != nil {
		w.conn.Close()
		w.conn = nil
	}
}

var (
	begin    = command(`BEGIN IMMEDIATE`)
	commit   = command(`COMMIT`)
	rollback = command(`ROLLBACK`)
)

// rollback ignores errors, because the driver may have ended the transaction
// already.
func (w *writer) rollback(t *tx) { _, _ = t.exec(rollback) }

func (w *writer) setLevel(ctx context.Context, to level) error {
	if to == w.level {
		return nil
	}
	err := w.db.engine.SetLevel(ctx, w.conn, to == full)
	if err == nil {
		w.level = to
	}
	return err
}

// tx is a transaction of the writer or of the caller. The writer prepares each
// statement once, and keeps it until it closes the connection.
type tx struct {
	w        *writer
	ctx      context.Context
	used     features // see end.go
	released bool     // whether waiting tasks have moved, so that they may start now or at another time
	expired  []int64  // tasks that were cancelled because they had expired
	full     bool     // whether the claim has used up a limit on running tasks
	outer    *sqlx.Tx // transaction of the caller, or nil
	db       *DB
	hooks    commands.Hooks // hooks of the worker, for tasks without hooks of their own

	deleted []int64             // by Apply; their rows in other tables are left
	revived []jobs.ActionResult // dependents that the current action has retried

	inserts *inserter // collects the new tasks of all writes of the group
	lastID  int64     // highest id of a task; 0 if not read yet
	firstID int64     // id of the first task that this transaction has added; 0 if not known
	room    room      // with Options.MaxBytes

	wakeups   bool // whether the current write may have given other workers something to do
	last      bool // whether the current write is the last one of its group
	committed bool // whether the last statement has also committed, as a server can
	changed   bool // whether the transaction may have changed rows
}

func (t *tx) stmt(s *statement) (*sqlx.Stmt, error) {
	if stmt := t.w.stmts[s]; stmt != nil {
		return stmt, nil
	}
	stmt, err := t.w.conn.PreparexContext(t.ctx, t.db.sql.Text(s))
	if err != nil {
		return nil, err
	}
	t.w.stmts[s] = stmt
	return stmt, nil
}

// exec runs a statement and returns the number of rows that it changed.
func (t *tx) exec(s *statement, args ...any) (int64, error) {
	result, err := t.do(s, args)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// execOne runs a statement that must change exactly one row, which this
// transaction has just read.
func (t *tx) execOne(s *statement, args ...any) error {
	n, err := t.exec(s, args...)
	if err == nil && n != 1 {
		err = fmt.Errorf("%d rows changed, not one", n)
	}
	return err
}

func (t *tx) do(s *statement, args []any) (result sql.Result, err error) {
	var stmt *sqlx.Stmt
	switch {
	case t.outer != nil:
		result, err = t.outer.ExecContext(t.ctx, t.db.sql.Text(s), t.db.engine.Values(args)...)
	case s.Once:
		result, err = t.w.conn.ExecContext(t.ctx, t.db.sql.Text(s), args...)
	default:
		if stmt, err = t.stmt(s); err == nil {
			result, err = stmt.ExecContext(t.ctx, args...)
		}
	}

	t.changed = t.changed || err == nil && hasChanged(s, result)
	return result, err
}

func hasChanged(s *statement, result sql.Result) bool {
	if s.Reads {
		return false
	}
	n, err := result.RowsAffected()
	return n > 0 || err != nil
}

// pipeline is exec for a statement whose result isn't needed at once. A server
// gets it together with the next statement, whose call returns the errors of
// both.
func (t *tx) pipeline(s *statement, args ...any) error {
	if t.outer != nil || !t.db.traits.Pipelines {
		return t.run(s, args...)
	}
	t.changed = t.changed || !s.Reads
	return t.db.engine.Later(t.w.conn, t.db.sql.Text(s), args)
}

// commitNext makes the next statement, the last one, also commit the
// transaction, if the engine can. This saves a round trip during which other
// writers would wait for the lock.
func (t *tx) commitNext() { t.committed = t.db.engine.CommitWithNext(t.w.conn) }

// insertRows runs insertTask or insertPlain for len(ids) tasks, and writes
// their ids in the order of the tasks.
func (t *tx) insertRows(s *statement, ids []int64, values []any) error {
	if t.db.traits.GivesIDs { // the ids increase, but may have gaps, because a concurrent transaction may take ids in between
		got := make([]int64, 0, len(ids))
		err := t.list(&got, s, values...)
		slices.Sort(got)
		if len(got) == 0 && err == nil && s == insertTask {
			return errTaken
		}
		if copy(ids, got) != len(ids) && err == nil {
			err = fmt.Errorf("%d rows inserted, not %d", len(got), len(ids))
		}
		return err
	}

	_, err := t.do(s, values)
	for i := range ids {
		ids[i] = values[i*len(values)/len(ids)].(int64)
	}

	return err
}

// scan reads the only row of a query. Without a row the error is sql.ErrNoRows.
func (t *tx) scan(s *statement, args []any, dest ...any) error {
	t.changed = t.changed || !s.Reads
	switch {
	case t.outer != nil:
		return t.outer.QueryRowxContext(t.ctx, t.db.sql.Text(s), t.db.engine.Values(args)...).Scan(dest...)
	case s.Once:
		return t.w.conn.QueryRowxContext(t.ctx, t.db.sql.Text(s), args...).Scan(dest...)
	}

	stmt, err := t.stmt(s)
	if err != nil {
		return err
	}
	return stmt.QueryRowxContext(t.ctx, args...).Scan(dest...)
}

// list reads all rows of a query. Rows that were left open would keep the
// connection in use, and a second query could wait for it for ever.
func (t *tx) list(dest any, s *statement, args ...any) error {
	t.changed = t.changed || !s.Reads
	switch {
	case t.outer != nil:
		return t.outer.SelectContext(t.ctx, dest, t.db.sql.Text(s), t.db.engine.Values(args)...)
	case s.Once:
		return t.w.conn.SelectContext(t.ctx, dest, t.db.sql.Text(s), args...)
	}

	stmt, err := t.stmt(s)
	if err != nil {
		return err
	}
	return stmt.SelectContext(t.ctx, dest, args...)
}
