package sqlite

import (
	"context"

	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/sqltext"
)

var (
	selectHighestID = sqltext.Query(`{highest_id}`)
	rememberID      = sqltext.Command(`INSERT INTO {last_ids} (id) VALUES (?) ON CONFLICT DO NOTHING`)
)

// HighestID returns the highest id that a task has or had, or 0.
func (d *File) HighestID(ctx context.Context) (id int64, err error) {
	err = d.read.GetContext(ctx, &id, d.sql.Text(selectHighestID))
	return id, d.Explain(err)
}

// RaiseIDs makes the next id of a task higher than last. Workers need no such
// thing: SQLite itself gives each a number that none has had (AUTOINCREMENT).
func (d *File) RaiseIDs(ctx context.Context, q engine.Querier, last int64) error {
	own, err := d.HighestID(ctx)
	if err == nil && own < last {
		_, err = q.Exec(rememberID, last)
	}
	return err
}

// freezeRows creates a trigger that rejects one kind of write to a table of a
// frozen database. thawRows drops it.
var (
	freezeRows = sqltext.Definition(`CREATE TRIGGER {trigger} BEFORE {write} ON {table} BEGIN SELECT RAISE(ABORT, {message}); END`)
	thawRows   = sqltext.Definition(`DROP TRIGGER IF EXISTS {trigger}`)
)

// Freezing and Thawing return the statements that create and drop these
// triggers.

func (*File) Freezing(message string) []*sqltext.Statement { return eachWrite(freezeRows, message) }
func (*File) Thawing() []*sqltext.Statement                { return eachWrite(thawRows, "") }

// eachWrite makes a statement from s for each of FrozenTables and each kind of
// write. message is what a trigger says when it rejects the write.
func eachWrite(s *sqltext.Statement, message string) (list []*sqltext.Statement) {
	for _, table := range engine.FrozenTables {
		for _, write := range []string{"INSERT", "UPDATE", "DELETE"} {
			list = append(list, s.With(sqltext.Parts{
				"trigger": "{moving_" + table + "_" + write + "}",
				"write":   write,
				"table":   "{" + table + "}",
				"message": sqltext.Literal(message),
			}))
		}
	}

	return list
}
