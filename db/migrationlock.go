package db

import (
	"context"
	"strings"

	"example.com/runner/db/internal/engine"
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

// What triggers say. A text begins with frozenText: by that it is found again.
const (
	frozenText     = engine.FrozenText
	movingText     = frozenText + "is being moved to %s"
	movedText      = frozenText + "was moved to %s"
	incompleteText = frozenText + "is not complete: a move from %s has not ended"
)

// Frozen returns why nothing in the database can be changed; empty: it can.
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

// freeze refuses every later write, with a text; empty: it refuses none any more.
func (t *tx) freeze(text string) error {
	is, err := t.frozen()
	if err != nil || is == text {
		return err
	}
	for _, statement := range t.db.engine.Freezing(is, text) {
		if _, err := t.w.conn.ExecContext(t.ctx, statement); err != nil { // each once: none is worth being kept
			return err
		}
	}
	return nil
}

// thaw lets this transaction write, if the database is as the move that text tells of has left it.
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
	if d.engine.Refused(err) {
		if text, _ := d.Frozen(context.Background()); text != "" {
			return d.frozenProblem(text, err)
		}
	}
	return d.explain(err)
}
