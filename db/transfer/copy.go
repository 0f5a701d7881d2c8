package transfer

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/sqltext"
	"example.com/runner/jobs"
)

// A move copies one table after the other, and at the end compares the number
// of rows in both databases. A row has the same columns and values on both
// engines, except that a server has several rows for a counter; see
// schema/postgres.

// copied are the tables that a move copies. A table comes after those that its
// rows and triggers refer to.
var copied = []string{"tasks", "inputs", "cancel_requests", "progress_reports", "attempts", "output", "steps", "dependencies",
	"task_pauses", "task_changes", "schedules", "schedule_open", "schedule_inputs", "limits", "pauses", "open_failures", "unique_keys",
	"cursors", "finished", "finished_seq", "workers", "counters", "counter_hours", "totals"}

// sumCounters adds up the rows of each counter.
const sumCounters = `(SELECT queue, state, minute, sum(n) AS n FROM {counters} GROUP BY queue, state, minute) AS counters`

// parts are the texts for the marks in the statements about a table.
func parts(table string) sqltext.Parts {
	rows := "{" + table + "}"
	if table == "counters" {
		rows = sumCounters
	}
	return sqltext.Parts{"table": "{" + table + "}", "rows": rows}
}

// These are the limits for what is sent to a server before the move waits for
// the results.
const (
	copyWaiting = 500     // statements
	copyBytes   = 1 << 20 // their size
)

// Each of these statements is for one table: {table} stands for its name and
// {rows} for its rows.
var (
	copyAll   = sqltext.Query(`SELECT * FROM {rows}`)
	clearRows = sqltext.Command(`DELETE FROM {table}`)
	copyRow   = sqltext.Command(`INSERT INTO {table} ({columns}){given_ids} VALUES ({values})`)
	countRows = sqltext.Query(`SELECT count(*) FROM {rows}`)
)

// selectLastID returns the highest id of a task.
var selectLastID = sqltext.Query(`SELECT coalesce(max(id), 0) FROM {tasks}`)

// endWorkers records an end for each worker that has none: its last heartbeat.
// They were killed, because no worker runs during a move.
var endWorkers = sqltext.Command(`UPDATE {workers} SET ended_at = beat_at WHERE ended_at IS NULL`)

// TableCount is the number of rows of a table, the same in both databases.
type TableCount struct {
	Table string
	Rows  int64
}

// count counts the rows of each table.
func count(q engine.Querier) ([]TableCount, error) {
	counts := make([]TableCount, len(copied))
	for i, table := range copied {
		counts[i].Table = table
		if err := q.Scan(countRows.With(parts(table)), nil, &counts[i].Rows); err != nil {
			return nil, err
		}
	}

	return counts, nil
}

// copyRows copies the rows of a table from the source.
func (m *move) copyRows(ctx context.Context, source, target engine.Querier, table string) error {
	from := m.from.Engine()
	rows, err := from.Reader().QueryxContext(ctx, from.Dialect().Text(copyAll.With(parts(table))))
	if err != nil {
		return from.Explain(err)
	}
	defer rows.Close()

	types, err := rows.ColumnTypes()
	if err != nil {
		return err
	}

	insert := insertInto(table, types)
	waiting, bytes := 0, 0
	for rows.Next() {
		values, err := rows.SliceScan()
		if err != nil {
			return from.Explain(err)
		}

		waiting, bytes = waiting+1, bytes+convert(values, types)
		if err := target.Later(insert, values...); err != nil {
			return err
		}
		if waiting >= copyWaiting || bytes >= copyBytes {
			if err := m.settle(source, target, waiting); err != nil {
				return err
			}
			waiting, bytes = 0, 0
		}
	}

	if err := rows.Err(); err != nil {
		return from.Explain(err)
	}

	return m.settle(source, target, waiting)
}

// insertInto returns the statement that inserts a row with these columns.
func insertInto(table string, columns []*sql.ColumnType) *sqltext.Statement {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = `"` + c.Name() + `"`
	}

	texts := parts(table)
	texts["columns"] = strings.Join(names, ", ")
	texts["values"] = strings.Repeat("?, ", len(names)-1) + "?"
	return copyRow.With(texts)
}

// convert turns the values of a row into what the target accepts, and returns
// their size in bytes.
func convert(values []any, types []*sql.ColumnType) (size int) {
	for i, value := range values {
		switch value := value.(type) {
		case string:
			size += len(value)
		case []byte:
			size += len(value)
			if types[i].DatabaseTypeName() == "JSON" { // the driver of a server returns it as bytes
				values[i] = string(value)
			}
		default:
			size += 8
		}
	}

	return size
}

// settle waits until the target has run the last n statements. It also uses the
// source's transaction, which a server would end if it were idle for long.
func (m *move) settle(source, target engine.Querier, n int) error {
	for _, q := range []engine.Querier{source, target} {
		var last int64
		if err := q.Scan(selectLastID, nil, &last); err != nil {
			return err
		}
	}

	if m.done += n; m.progress != nil {
		m.progress(m.done, m.all)
	}
	return nil
}

// sameRows returns an error if a table of the target doesn't have as many rows
// as that of the source had.
func (m *move) sameRows(target engine.Querier) error {
	here, err := count(target)
	if err != nil {
		return err
	}

	for i, c := range m.counts {
		if c != here[i] {
			return &jobs.Error{Kind: jobs.ErrConflict, What: "the databases differ in the table " + c.Table,
				Why: []string{fmt.Sprintf("%d rows in %s, %d in %s", c.Rows, m.from.Path(), here[i].Rows, m.to.Path()),
					"nothing was changed"}}
		}
	}

	return nil
}
