package transfer

import (
	"context"
	"fmt"
	"strings"

	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/sqltext"
	"example.com/runner/jobs"
)

// A move copies a database to another one in the order of task ids: up to
// copiedAtOnce tasks with all their rows in other tables, then the next ones. At
// the end it copies the rows that do not belong to a single task, and compares
// both databases. A row has the same columns and values on both engines, except
// that a server has several rows for a counter; see schema/postgres.

// copiedTable is a table whose rows a move copies.
type copiedTable struct {
	name  string
	key   string // column with the id of the task of a row; empty if the rows belong to no task
	order string // columns by which the rows are ordered
	rows  string // query for the rows; empty if they are copied unchanged
}

// sumCounters adds up the rows of each counter.
const sumCounters = `SELECT queue, state, minute, sum(n) AS n FROM {counters} GROUP BY queue, state, minute`

var copiedTables = []copiedTable{
	{name: "tasks", key: "id", order: "id"},
	{name: "inputs", key: "task_id", order: "task_id"},
	{name: "cancel_requests", key: "task_id", order: "task_id"},
	{name: "progress_reports", key: "task_id", order: "task_id"},
	{name: "attempts", key: "task_id", order: "task_id, generation_id"},
	{name: "output", key: "task_id", order: "task_id, generation_id, seq"},
	{name: "steps", key: "task_id", order: "task_id, seq"},
	{name: "dependencies", key: "task_id", order: "task_id, on_id"},
	{name: "task_pauses", key: "task_id", order: "task_id"},
	{name: "task_changes", key: "task_id", order: "task_id, seq"},
	{name: "schedules", order: "name"},
	{name: "schedule_open", order: "schedule, task_id"},
	{name: "schedule_inputs", order: "name"},
	{name: "limits", order: "kind, name"},
	{name: "pauses", order: "queue"},
	{name: "open_failures", order: "subject"},
	{name: "unique_keys", order: "unique_key"},
	{name: "cursors", order: "name"},
	{name: "finished", order: "seq"},
	{name: "finished_seq", order: "seq"},
	{name: "workers", order: "number"},
	{name: "counters", order: "queue, state, minute", rows: sumCounters},
	{name: "counter_hours", order: "queue, state, hour"},
	{name: "totals", order: "queue, job, result"},
}

// parts returns the texts that replace the names in braces in the statements about the table.
func (c copiedTable) parts() sqltext.Parts {
	table := "{" + c.name + "}"
	rows := table
	if c.rows != "" {
		rows = "(" + c.rows + ") AS " + c.name
	}
	return sqltext.Parts{"table": table, "rows": rows, "key": c.key, "order": c.order}
}

const (
	copiedAtOnce = 256     // number of tasks that are copied together
	copyWaiting  = 500     // number of statements that are sent to a server before the move waits for their results
	copyBytes    = 1 << 20 // size in bytes of the statements that are sent to a server before the move waits for their results
)

// Each of these statements is for one table: {table} stands for its name and {rows} for its rows; see copiedTable.parts. copyThese reads
// the rows of the tasks with ids after [1] and up to [2]. copyAll reads all rows. clearRows deletes all rows. copyRow adds a row. countRows
// counts the rows.
var (
	copyThese = sqltext.Query(`SELECT * FROM {rows} WHERE {key} > ? AND {key} <= ? ORDER BY {order}`)
	copyAll   = sqltext.Query(`SELECT * FROM {rows} ORDER BY {order}`)
	clearRows = sqltext.Command(`DELETE FROM {table}`)
	copyRow   = sqltext.Command(`INSERT INTO {table} ({columns}){given_ids} VALUES ({values})`)
	countRows = sqltext.Query(`SELECT count(*) FROM {rows}`)
)

// selectLastID returns the highest id of a task. selectNextIDs lists up to [2] tasks with ids above [1].
var (
	selectLastID  = sqltext.Query(`SELECT coalesce(max(id), 0) FROM {tasks}`)
	selectNextIDs = sqltext.Query(`SELECT id FROM {tasks} WHERE id > ? ORDER BY id LIMIT ?`)
)

// endWorkers records an end for each worker that has none: the time of its last heartbeat. These workers were killed, because no worker
// runs during a move.
var endWorkers = sqltext.Command(`UPDATE {workers} SET ended_at = beat_at WHERE ended_at IS NULL`)

// TableCount is the number of rows of a table. The move has checked that both databases have the same number.
type TableCount struct {
	Table string
	Rows  int64
}

// copyRows copies the rows of a table from the source. If the rows belong to tasks (c.key is set), it copies only the rows
// of tasks whose ids are greater than the parameter "behind" and at most the parameter "upTo".
func (m *move) copyRows(ctx context.Context, q engine.Querier, c copiedTable, behind, upTo int64) error {
	from := m.from.Engine()
	read, args := copyAll, []any(nil)
	if c.key != "" {
		read, args = copyThese, []any{behind, upTo}
	}
	rows, err := from.Reader().QueryxContext(ctx, from.Dialect().Text(read.With(c.parts())), args...)
	if err != nil {
		return from.Explain(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	types, err := rows.ColumnTypes()
	if err != nil {
		return err
	}
	for i, name := range columns {
		columns[i] = `"` + name + `"`
	}
	parts := c.parts()
	parts["columns"], parts["values"] = strings.Join(columns, ", "), strings.Repeat("?, ", len(columns)-1)+"?"
	insert := copyRow.With(parts)
	waiting, bytes := 0, 0
	for rows.Next() {
		values, err := rows.SliceScan()
		if err != nil {
			return from.Explain(err)
		}
		for i, value := range values {
			// convert JSON to a string, because the driver of a server returns it as bytes
			if text, ok := value.([]byte); ok && types[i].DatabaseTypeName() == "JSON" {
				values[i] = string(text)
			}
			bytes += width(value)
		}
		if err := q.Later(insert, values...); err != nil {
			return err
		}
		if waiting++; waiting >= copyWaiting || bytes >= copyBytes {
			if err := settle(q); err != nil {
				return err
			}
			waiting, bytes = 0, 0
		}
	}
	if err := rows.Err(); err != nil {
		return from.Explain(err)
	}
	return settle(q)
}

// settle waits until the server has run all statements that the move has sent.
func settle(q engine.Querier) error {
	var last int64
	return q.Scan(selectLastID, nil, &last)
}

func width(value any) int {
	switch value := value.(type) {
	case string:
		return len(value)
	case []byte:
		return len(value)
	}
	return 8
}

// sameRows counts the rows of both databases, and returns an error if they differ.
func (m *move) sameRows(source, q engine.Querier) ([]TableCount, error) {
	counts := make([]TableCount, len(copiedTables))
	for i, c := range copiedTables {
		count := countRows.With(c.parts())
		var there, here int64
		if err := source.Scan(count, nil, &there); err != nil {
			return nil, err
		}
		if err := q.Scan(count, nil, &here); err != nil {
			return nil, err
		}
		if there != here {
			return nil, &jobs.Error{Kind: jobs.ErrConflict, What: "the databases differ in the table " + c.name,
				Why: []string{fmt.Sprintf("%d rows in %s, %d in %s", there, m.from.Path(), here, m.to.Path()), "nothing was changed"}}
		}
		counts[i] = TableCount{c.name, here}
	}
	return counts, nil
}
