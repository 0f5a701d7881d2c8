package sqlite

import (
	"context"
	"fmt"
	"strings"

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

// RaiseIDs makes the next id of a task higher than last. The numbers of workers need no such step in a file.
func (d *File) RaiseIDs(ctx context.Context, q engine.Querier, last int64) error {
	own, err := d.HighestID(ctx)
	if err == nil && own < last {
		_, err = q.Exec(rememberID, last)
	}
	return err
}

// freezeRows creates a trigger that rejects writes during a migration, and thawRows drops it. selectFrozen returns the source of the
// trigger named [1].
const (
	freezeRows = `CREATE TRIGGER %[1]smoving_%[2]s_%[3]s BEFORE %[3]s ON %[1]s%[2]s BEGIN SELECT RAISE(ABORT, %[4]s); END`
	thawRows   = `DROP TRIGGER IF EXISTS %smoving_%s_%s`
)

var selectFrozen = sqltext.Query(`SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND name = ?`)

// FrozenBy returns the query for the source of one of the triggers, and its argument.
func (d *File) FrozenBy() (*sqltext.Statement, string) {
	return selectFrozen, d.sql.Prefix + "moving_tasks_INSERT"
}

// Freezing returns the statements that replace these triggers.
func (d *File) Freezing(is, text string) (list []string) {
	quoted := "'" + strings.ReplaceAll(text, "'", "''") + "'"
	for _, table := range engine.FrozenTables {
		for _, write := range []string{"INSERT", "UPDATE", "DELETE"} {
			if is != "" {
				list = append(list, fmt.Sprintf(thawRows, d.sql.Prefix, table, write))
			}
			if text != "" {
				list = append(list, fmt.Sprintf(freezeRows, d.sql.Prefix, table, write, quoted))
			}
		}
	}
	return list
}
