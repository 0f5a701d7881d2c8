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

// RaiseIDs makes the next id of a task higher than last. In a file the numbers of workers need no such step.
func (d *File) RaiseIDs(ctx context.Context, q engine.Querier, last int64) error {
	own, err := d.HighestID(ctx)
	if err == nil && own < last {
		_, err = q.Exec(rememberID, last)
	}
	return err
}

// freezeRows creates a trigger that rejects writes to a frozen database, and thawRows drops it.
const (
	freezeRows = `CREATE TRIGGER %[1]smoving_%[2]s_%[3]s BEFORE %[3]s ON %[1]s%[2]s BEGIN SELECT RAISE(ABORT, %[4]s); END`
	thawRows   = `DROP TRIGGER IF EXISTS %smoving_%s_%s`
)

// Freezing returns the statements that create these triggers.
func (d *File) Freezing(message string) []string {
	quoted := "'" + strings.ReplaceAll(message, "'", "''") + "'"
	return eachWrite(func(table, write string) string { return fmt.Sprintf(freezeRows, d.sql.Prefix, table, write, quoted) })
}

// Thawing returns the statements that drop these triggers.
func (d *File) Thawing() []string {
	return eachWrite(func(table, write string) string { return fmt.Sprintf(thawRows, d.sql.Prefix, table, write) })
}

// eachWrite returns a statement for each kind of write to each frozen table.
func eachWrite(statement func(table, write string) string) (list []string) {
	for _, table := range engine.FrozenTables {
		for _, write := range []string{"INSERT", "UPDATE", "DELETE"} {
			list = append(list, statement(table, write))
		}
	}
	return list
}

// selectTrigger returns the source of trigger [1].
var selectTrigger = sqltext.Query(`SELECT sql FROM sqlite_schema WHERE type = 'trigger' AND name = ?`)

// frozen returns the reason why the file rejects writes. A file of schema 11, and one that an early program of schema 12 wrote, has no
// table migration_state. It stores the reason only as the message of its triggers.
func (d *File) frozen(ctx context.Context, q engine.Querier) (engine.Frozen, error) {
	frozen, err := engine.ReadFrozen(q, d.sql)
	if err != nil || frozen != (engine.Frozen{}) {
		return frozen, err
	}
	var source string
	name := d.sql.Prefix + "moving_tasks_INSERT"
	if err := engine.NoRow(d.conn.QueryRowxContext(ctx, d.sql.Text(selectTrigger), name).Scan(&source)); err != nil {
		return engine.Frozen{}, err
	}
	const other = "\x00" // this text stands for the identity of the other database
	for _, state := range []engine.FrozenState{engine.Moving, engine.Moved, engine.Incomplete} {
		before, after, _ := strings.Cut("'"+engine.Frozen{State: state, Other: other}.Message()+"'", other)
		_, rest, ok := strings.Cut(source, before)
		if end := strings.LastIndex(rest, after); ok && end >= 0 {
			return engine.Frozen{State: state, Other: strings.ReplaceAll(rest[:end], "''", "'")}, nil
		}
	}
	return engine.Frozen{}, nil
}
