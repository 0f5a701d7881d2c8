package db

import (
	"context"
	"strings"

	"example.com/runner/db/internal/engine"
	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// A migration freezes both databases: triggers reject every write to the tables that users and workers change. The triggers also stop a
// process that opened the database before the migration, an older program, and plain SQL. So no task of a frozen database can start, and
// nobody can add a task that would never run. The message of the triggers also records the progress of the migration:
//
//	source     target     state of the migration
//	           incomplete killed at its very beginning; the target is empty
//	moving     incomplete in progress; no task runs
//	moved      incomplete everything is checked; the commit of the target follows
//	moved                 complete; the tasks run on the target
//
// Only the last commit thaws the target, and it follows the commit that marks the source as moved. So tasks never run on both databases.

// These are the messages of the triggers. Each begins with frozenText, by which Frozen finds it.
const (
	frozenText     = engine.FrozenText
	movingText     = frozenText + "is being moved to %s"
	movedText      = frozenText + "was moved to %s"
	incompleteText = frozenText + "is not complete: a move from %s has not ended"
)

// Frozen returns the message of the triggers that freeze the database, or "" if it is not frozen.
func (d *DB) Frozen(ctx context.Context) (string, error) {
	trigger, arg := d.engine.FrozenBy()
	body, err := readValue[string](ctx, d, trigger, arg)
	return engine.FrozenMessage(body), engine.NoRow(err)
}

func (t *tx) frozen() (string, error) {
	trigger, arg := t.db.engine.FrozenBy()
	var body string
	err := t.scan(trigger, []any{arg}, &body)
	return engine.FrozenMessage(body), engine.NoRow(err)
}

// freeze makes triggers reject every later write with the message text. An empty text removes the triggers.
func (t *tx) freeze(text string) error {
	is, err := t.frozen()
	if err != nil || is == text {
		return err
	}
	for _, statement := range t.db.engine.Freezing(is, text) {
		if _, err := t.w.conn.ExecContext(t.ctx, statement); err != nil { // not prepared, because each runs only once
			return err
		}
	}
	return nil
}

// thaw lets this transaction write. It returns an error if the message of the triggers is not text: another process has changed the
// state of the migration.
func (t *tx) thaw(text string) error {
	is, err := t.frozen()
	if err == nil && is != text {
		err = &jobs.Error{Kind: jobs.ErrConflict, What: "somebody else has ended this move",
			Why: []string{t.db.path + " is not as it was left a moment ago"}}
	}
	if err != nil {
		return err
	}
	return t.freeze("")
}

// frozenProblem returns the error for a frozen database; text is the message of its triggers.
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

// refused is explain for a write that the triggers of a frozen database may have rejected.
func (d *DB) refused(err error) error {
	if d.engine.Refused(err) {
		if text, _ := d.Frozen(context.Background()); text != "" {
			return d.frozenProblem(text, err)
		}
	}
	return d.explain(err)
}
