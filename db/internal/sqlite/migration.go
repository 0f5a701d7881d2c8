package sqlite

import (
	"context"

	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/sqltext"
)

// selectHighestID returns the highest id that a task has or had, or 0 if there was none. rememberID makes the next id higher than [1].
var (
	selectHighestID = sqltext.Query(`{highest_id}`)
	rememberID      = sqltext.Command(`INSERT INTO {last_ids} (id) VALUES (?) ON CONFLICT DO NOTHING`)
)

// HighestID returns the highest id that a task has or had.
func (d *File) HighestID(ctx context.Context) (id int64, err error) {
	err = d.read.GetContext(ctx, &id, d.sql.Text(selectHighestID))
	return id, d.Explain(err)
}

// RaiseIDs makes the next id of a task higher than last. It need not do the same for the numbers of workers: SQLite itself gives a new
// worker a number that no worker has had (AUTOINCREMENT).
func (d *File) RaiseIDs(ctx context.Context, q engine.Querier, last int64) error {
	own, err := d.HighestID(ctx)
	if err == nil && own < last {
		_, err = q.Exec(rememberID, last)
	}
	return err
}

// freezeRows creates a trigger that rejects one kind of write to a table while a migration has frozen the database. thawRows drops the
// trigger.
var (
	freezeRows = sqltext.Definition(`CREATE TRIGGER {trigger} BEFORE {write} ON {table} BEGIN SELECT RAISE(ABORT, {message}); END`)
	thawRows   = sqltext.Definition(`DROP TRIGGER IF EXISTS {trigger}`)
)

// Freezing returns the statements that create the triggers that reject writes.
func (*File) Freezing(message string) []*sqltext.Statement { return eachWrite(freezeRows, message) }

// Thawing returns the statements that drop the triggers that Freezing creates.
func (*File) Thawing() []*sqltext.Statement { return eachWrite(thawRows, "") }

// eachWrite makes the statements of Freezing and Thawing from the template s, one for each table of FrozenTables and each kind of write.
// The parameter "message" is the message with which a trigger rejects the write.
func eachWrite(s *sqltext.Statement, message string) (list []*sqltext.Statement) {
	for _, table := range engine.FrozenTables {
		for _, write := range []string{"INSERT", "UPDATE", "DELETE"} {
			list = append(list, s.With(sqltext.Parts{"trigger": "{moving_" + table + "_" + write + "}", "write": write,
				"table": "{" + table + "}", "message": sqltext.Literal(message)}))
		}
	}
	return list
}
