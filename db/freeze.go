package db

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// A database that is moved to another one is frozen: triggers refuse every write of what people and workers change, whoever asks: a process
// that has it open since before, an older program, plain SQL. So no task of it can start any more, and none is added that nobody would run.
// What the triggers say is also the record of how far a move has come:
//
//	here       there      a move
//	           incomplete was killed at its very beginning; nothing is there
//	moving     incomplete goes on; nobody runs anything
//	moved      incomplete has checked everything, and is about to commit it
//	moved                 is complete: the tasks run there
//
// Only the last commit thaws the database over there, and only after this one says that it was moved: so there is no moment when both run.

// frozenTables are those that a move takes as they are; what else there is follows from writes of tasks.
var frozenTables = []string{"tasks", "schedules", "limits", "pauses"}

// What triggers say. A text begins with frozenText: by that it is found again.
const (
	frozenText     = "this database "
	movingText     = frozenText + "is being moved to %s"
	movedText      = frozenText + "was moved to %s"
	incompleteText = frozenText + "is not complete: a move from %s has not ended"
)

const (
	freezeRows     = `CREATE TRIGGER %[1]smoving_%[2]s_%[3]s BEFORE %[3]s ON %[1]s%[2]s BEGIN SELECT RAISE(ABORT, %[4]s); END`
	thawRows       = `DROP TRIGGER IF EXISTS %smoving_%s_%s`
	freezeFunction = `CREATE FUNCTION %smoving() RETURNS trigger LANGUAGE plpgsql AS $moving$ BEGIN RAISE EXCEPTION USING ERRCODE = '` + notNow + `', MESSAGE = %s; END $moving$`
	freezeTable    = `CREATE TRIGGER moving_%[2]s BEFORE INSERT OR UPDATE OR DELETE ON %[1]s%[2]s FOR EACH ROW EXECUTE FUNCTION %[1]smoving()`
	thawFunction   = `DROP FUNCTION %smoving() CASCADE`
)

// notNow is what frozen tables of a server say (object_not_in_prerequisite_state).
const notNow = "55000"

// selectFrozen reads the trigger named [1]; serverFrozen the function in the schema [1].
var (
	selectFrozen = query(`SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND name = ?`)
	serverFrozen = query(`SELECT prosrc FROM pg_proc WHERE proname = 'moving' AND pronamespace = to_regnamespace(?)`)
)

// frozenBy returns the statement that tells whether the database is frozen, and its argument.
func (d *DB) frozenBy() (trigger *statement, arg string) {
	if d.server != nil {
		return serverFrozen, d.server.Schema
	}
	return selectFrozen, d.sql.Prefix + "moving_tasks_INSERT"
}

// Frozen returns why nothing in the database can be changed; empty: it can.
func (d *DB) Frozen(ctx context.Context) (string, error) {
	trigger, arg := d.frozenBy()
	body, err := readValue[string](ctx, d, trigger, arg)
	return frozenIn(body), noRow(err)
}

func (t *tx) frozen() (string, error) {
	trigger, arg := t.db.frozenBy()
	var body string
	err := t.scan(trigger, []any{arg}, &body)
	return frozenIn(body), noRow(err)
}

func noRow(err error) error {
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	return err
}

// frozenIn returns what a trigger says.
func frozenIn(body string) string {
	_, text, _ := strings.Cut(body, "'"+frozenText)
	end := strings.LastIndexByte(text, '\'')
	if end < 0 {
		return ""
	}
	return frozenText + strings.ReplaceAll(text[:end], "''", "'")
}

// freeze refuses every later write, with a text; empty: it refuses none any more.
func (t *tx) freeze(text string) error {
	is, err := t.frozen()
	if err != nil || is == text {
		return err
	}
	for _, statement := range t.db.freezing(is, text) {
		if _, err := t.w.conn.ExecContext(t.ctx, statement); err != nil { // each once: none is worth being kept
			return err
		}
	}
	return nil
}

// freezing returns the statements that make a database that is frozen with the text is one that is frozen with text; empty: not frozen.
func (d *DB) freezing(is, text string) (list []string) {
	quoted := "'" + strings.ReplaceAll(text, "'", "''") + "'"
	prefix := d.sql.Prefix
	add := func(wanted bool, statement string, args ...any) {
		if wanted {
			list = append(list, fmt.Sprintf(statement, args...))
		}
	}
	add(d.server != nil && is != "", thawFunction, prefix)
	add(d.server != nil && text != "", freezeFunction, prefix, quoted)
	for _, table := range frozenTables {
		add(d.server != nil && text != "", freezeTable, prefix, table)
		for _, write := range []string{"INSERT", "UPDATE", "DELETE"} {
			add(d.server == nil && is != "", thawRows, prefix, table, write)
			add(d.server == nil && text != "", freezeRows, prefix, table, write, quoted)
		}
	}
	return list
}

// thaw lets this transaction write, if the database is as the move that text tells of has left it.
func (t *tx) thaw(text string) error {
	is, err := t.frozen()
	if err == nil && is != text {
		err = &jobs.Error{Kind: jobs.ErrConflict, What: "somebody else has ended this move", Why: []string{t.db.path + " is not as it was left a moment ago"}}
	}
	if err != nil {
		return err
	}
	return t.freeze("")
}

// frozenProblem is the problem of a database that is frozen, with the text of its triggers.
func (d *DB) frozenProblem(text string, err error) error {
	p := &jobs.Error{Kind: jobs.ErrConflict, What: text, Why: []string{"it is " + d.path, "nothing was changed"}, Err: err}
	switch {
	case strings.HasPrefix(text, strings.TrimSuffix(movedText, "%s")):
		p.Code, p.Hint = errcode.Moved, "the database it was moved to"
	case strings.HasPrefix(text, strings.TrimSuffix(movingText, "%s")):
		p.Code, p.Hint = errcode.Moving, "the same move again, which goes on, or give it up"
	default:
		p.Code, p.Hint = errcode.MoveIncomplete, "the same move again, which goes on"
	}
	return p
}

// refused is explain for a write that triggers may have refused because the database is frozen.
func (d *DB) refused(err error) error {
	if sqlState(err) == notNow || code(err) == sqlite3.SQLITE_CONSTRAINT {
		if text, _ := d.Frozen(context.Background()); text != "" {
			return d.frozenProblem(text, err)
		}
	}
	return explain(err, d.path)
}
