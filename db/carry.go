package db

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"example.com/runner/jobs"
)

// What a database holds is carried to another one by the hundred tasks, each with all that belongs to it in one transaction, in the order of
// ids: the highest id over there says how far it has come, so a move that was killed goes on behind it. What is not of single tasks comes with
// the last transaction, which counts, too. Rows are the same on both engines; see migrations/postgres.

// carried is a table whose rows are carried.
type carried struct {
	name  string
	key   string // the id of the task that a row belongs to; empty: it is of none
	order string // what its rows are read by
}

var carriedTables = []carried{
	{"tasks", "id", "id"},
	{"inputs", "task_id", "task_id"},
	{"attempt_rows", "task_id", "task_id, generation_id"},
	{"output", "task_id", "task_id, generation_id, seq"},
	{"steps", "task_id", "task_id, seq"},
	{"dependencies", "task_id", "task_id, on_id"},
	{"schedule_rows", "", "name"},
	{"schedule_open", "", "schedule, task_id"},
	{"schedule_inputs", "", "name"},
	{"limits", "", "kind, name"},
	{"pauses", "", "queue"},
	{"workers", "", "id"},
	{"counters", "", "queue, state, minute"},
	{"counter_hours", "", "queue, state, hour"},
	{"totals", "", "queue, job, result"},
}

// pathColumns are those that name files: no byte of theirs may change.
var pathColumns = []string{`"path"`, `"cwd"`, `"env_file"`}

const (
	carryTasks = 256     // in one transaction
	carryRows  = 500     // that wait for each other's answers, on a server
	carryBytes = 1 << 20 // of these
)

// carryThese reads the rows of the tasks behind [1] up to [2]; carryAll all rows of a table. They name the columns.
const (
	carryThese = `SELECT * FROM %s WHERE %s > ? AND %[2]s <= ? ORDER BY %s`
	carryAll   = `SELECT * FROM %s ORDER BY %s`
	clearRows  = `DELETE FROM %s`
	carryRow   = `INSERT INTO %s (%s) VALUES (%s)`
	carryRowTo = `INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE VALUES (%s)` // a server, which gives the ids itself
)

// selectLastID reads how far a move has come; selectNextIDs the next tasks behind [1].
const (
	selectLastID  = `SELECT coalesce(max(id), 0) FROM tasks`
	selectNextIDs = `SELECT id FROM tasks WHERE id > ? ORDER BY id LIMIT ?`
)

// setPlain gives task [1] the generation of a row of plain SQL that no worker has looked at: a row that is inserted with it would be checked
// against what it waited for, which may have been deleted.
const setPlain = `UPDATE tasks SET generation_id = 0 WHERE id = ?`

// endWorkers says goodbye for those that were killed: nobody of them will.
const endWorkers = `UPDATE workers SET ended_at = beat_at WHERE ended_at IS NULL`

// countRows counts the rows of a table, sumTasks those of tasks by their states, with sums that tell whether they are the same ones.
const (
	countRows = `SELECT count(*) FROM %s`
	sumTasks  = `SELECT state, count(*) AS n, CAST(sum(id) AS bigint) AS ids, CAST(sum(generation_id) AS bigint) AS generations FROM tasks GROUP BY state ORDER BY state`
)

// What was the highest id ever given, and that the next one is higher. In a file's table of sequences the name of ours is [1], or [2].
const (
	selectSequence = `SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = ?`
	clearSequence  = `DELETE FROM sqlite_sequence WHERE name = ?`
	setSequence    = `INSERT INTO sqlite_sequence (seq, name) VALUES (?, ?)`
	serverSequence = `SELECT coalesce(pg_sequence_last_value(CAST(pg_get_serial_sequence(?, 'id') AS regclass)), 0)`
	serverSetID    = `SELECT setval(CAST(pg_get_serial_sequence(?2, 'id') AS regclass), CAST(?1 AS bigint))`
)

// Carried is how many rows of a table there are, in both databases.
type Carried struct {
	Table string
	Rows  int64
}

// carry copies the rows of a table from another database.
func (t *tx) carry(from *DB, c carried, behind, upTo int64) error {
	text, args := fmt.Sprintf(carryAll, c.name, c.order), []any(nil)
	if c.key != "" {
		text, args = fmt.Sprintf(carryThese, c.name, c.key, c.order), []any{behind, upTo}
	}
	rows, err := from.read.QueryxContext(t.ctx, text, args...)
	if err != nil {
		return explain(err, from.path)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	generation := -1
	for i, name := range columns {
		if c.name == "tasks" && name == "generation_id" {
			generation = i
		}
		columns[i] = `"` + name + `"`
	}
	text = carryRow
	if t.db.server != nil {
		text = carryRowTo
	}
	insert := fmt.Sprintf(text, c.name, strings.Join(columns, ", "), strings.Repeat("?, ", len(columns)-1)+"?")
	var plain []int64
	waiting, bytes := 0, 0
	for rows.Next() {
		values, err := rows.SliceScan()
		if err != nil {
			return explain(err, from.path)
		}
		if generation >= 0 && values[generation] == int64(0) {
			values[generation] = int64(1)
			plain = append(plain, values[0].(int64)) // id is the first column
		}
		for i, value := range values {
			bytes += width(value)
			if text, ok := value.(string); ok && t.db.server != nil && slices.Contains(pathColumns, columns[i]) && !utf8.ValidString(text) {
				return &jobs.Problem{Kind: jobs.ErrInvalid, What: fmt.Sprintf("%s of task %v is not UTF-8: %q", columns[i], values[0], text),
					Why: []string{"a server cannot store it, and it would name another file", "it has not been moved"},
					Try: "runner move --undo " + from.path + ", then delete the task; a new name for the file"}
			}
		}
		if err := t.later(insert, values...); err != nil {
			return err
		}
		if waiting++; waiting >= carryRows || bytes >= carryBytes {
			if err := t.settle(); err != nil {
				return err
			}
			waiting, bytes = 0, 0
		}
	}
	if err := rows.Err(); err != nil {
		return explain(err, from.path)
	}
	for _, id := range plain {
		if err := t.one(setPlain, id); err != nil {
			return err
		}
	}
	return t.settle()
}

// settle returns when the server has answered what it was sent.
func (t *tx) settle() error {
	var last int64
	return t.scan(selectLastID, nil, &last)
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

// sequence returns the highest id that a task ever had.
func (d *DB) sequence(ctx context.Context) (last int64, err error) {
	text, arg := selectSequence, d.prefix()+"tasks"
	if d.server != nil {
		text = serverSequence
	}
	return last, explain(d.read.GetContext(ctx, &last, text, arg), d.path)
}

// setSequence makes the next id a higher one.
func (t *tx) setSequence(last int64) error {
	table := t.db.prefix() + "tasks"
	own, err := t.db.sequence(t.ctx)
	if err != nil || own >= last {
		return err
	}
	if t.db.server != nil {
		var set int64
		return t.scan(serverSetID, []any{last, table}, &set)
	}
	if _, err := t.exec(clearSequence, table); err != nil {
		return err
	}
	_, err = t.exec(setSequence, last, table)
	return err
}

// sameRows counts the rows of both databases, and returns an error when one has what the other has not. It is asked before rows are written
// that differ.
func (t *tx) sameRows(from *DB) ([]Carried, error) {
	counts := make([]Carried, len(carriedTables))
	for i, c := range carriedTables {
		text := fmt.Sprintf(countRows, c.name)
		var there, here int64
		if err := from.read.GetContext(t.ctx, &there, text); err != nil {
			return nil, explain(err, from.path)
		}
		if err := t.scan(text, nil, &here); err != nil {
			return nil, err
		}
		if there != here {
			return nil, differ(from, t.db, c.name, there, here)
		}
		counts[i] = Carried{c.name, here}
	}
	type sums struct {
		State       string `db:"state"`
		N           int64  `db:"n"`
		IDs         int64  `db:"ids"`
		Generations int64  `db:"generations"`
	}
	var there, here []sums
	if err := from.read.SelectContext(t.ctx, &there, sumTasks); err != nil {
		return nil, explain(err, from.path)
	}
	if err := t.list(&here, sumTasks); err != nil {
		return nil, err
	}
	if fmt.Sprint(there) != fmt.Sprint(here) {
		return nil, differ(from, t.db, "tasks", there, here)
	}
	return counts, nil
}

func differ(from, to *DB, table string, there, here any) error {
	return &jobs.Problem{Kind: jobs.ErrConflict, What: fmt.Sprintf("the databases differ: %s has %v in %s and %v in %s", table, there, from.path, here, to.path),
		Why: []string{"neither starts anything"}, Try: "runner move --undo " + from.path + ", then another destination"}
}
