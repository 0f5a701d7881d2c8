package engine

import (
	"example.com/runner/db/internal/sqltext"
	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// A move to another database marks both databases; see package transfer. A mark
// refuses writes: triggers reject every write to the tables that users and
// workers change, also by a process that opened the database before, an older
// program, and plain SQL. So no task of a marked database can start, and nobody
// can add a task that would never run. The table migration_state holds the
// mark. It exists only in a marked database. Its row and the triggers are
// always written in the same transaction.

// FrozenState is the role of a database in a move, for which it rejects writes.
type FrozenState string

const (
	Moved      FrozenState = "moved"      // the source
	Incomplete FrozenState = "incomplete" // the target of a move that hasn't ended
)

// Frozen is why a database rejects writes. With the zero Frozen it accepts
// them.
type Frozen struct {
	State FrozenState
	Other string // identity of the other database of the move
}

// FrozenTables are the tables with triggers. The others need none: they change
// only in transactions that also change one of these.
var FrozenTables = []string{"tasks", "schedules", "limits", "pauses"}

// Message returns the message with which the triggers reject writes.
func (f Frozen) Message() string {
	if f.State == Moved {
		return "this database was moved to " + f.Other
	}
	return "this database is not complete: a move from " + f.Other + " has not ended"
}

// Error returns the error for a write to the frozen database name. err is that
// of the driver, or nil.
func (f Frozen) Error(name string, err error) *jobs.Error {
	p := &jobs.Error{Kind: jobs.ErrConflict, What: f.Message(), Why: []string{"it is " + name, "nothing was changed"}, Err: err}
	if p.Code, p.Hint = errcode.MoveIncomplete, "the same move again"; f.State == Moved {
		p.Code, p.Hint = errcode.Moved, "the database it was moved to"
	}
	return p
}

var (
	hasState    = sqltext.Query(`SELECT {table_exists}`)
	selectState = &sqltext.Statement{Template: `SELECT state, other FROM {migration_state}`, Reads: true, Once: true}
	insertState = &sqltext.Statement{Template: `INSERT INTO {migration_state} (state, other) VALUES (?, ?)`, Once: true}

	createState = sqltext.Definition(`CREATE TABLE {migration_state} (state TEXT NOT NULL, other TEXT NOT NULL)`).With(nil)
	dropState   = sqltext.Definition(`DROP TABLE IF EXISTS {migration_state}`).With(nil)
)

// ReadFrozen returns why the database rejects writes.
func ReadFrozen(q Querier, dialect *sqltext.Dialect) (f Frozen, err error) {
	for range 2 { // another process may drop the table after hasState has found it
		var exists bool
		if err = q.Scan(hasState, []any{dialect.Prefix + "migration_state"}, &exists); err != nil || !exists {
			return Frozen{}, err
		}
		if err = q.Scan(selectState, nil, &f.State, &f.Other); err == nil {
			return f, nil
		}
	}
	return Frozen{}, err
}

// Freeze makes the database reject later writes. It must run in a transaction.
func Freeze(q Querier, e Engine, f Frozen) error {
	is, err := ReadFrozen(q, e.Dialect())
	if err != nil || is == f {
		return err
	}
	if is != (Frozen{}) {
		if err := Thaw(q, e); err != nil {
			return err
		}
	}

	if err := execAll(q, createState); err != nil {
		return err
	}
	if _, err := q.Exec(insertState, string(f.State), f.Other); err != nil {
		return err
	}

	return execAll(q, e.Freezing(f.Message())...)
}

// Thaw makes a frozen database accept writes again, also in a transaction.
func Thaw(q Querier, e Engine) error {
	return execAll(q, append(e.Thawing(), dropState)...)
}

// execAll runs statements that have no parameters.
func execAll(q Querier, statements ...*sqltext.Statement) error {
	for _, s := range statements {
		if _, err := q.Exec(s); err != nil {
			return err
		}
	}
	return nil
}
