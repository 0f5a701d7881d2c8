//go:build unix

package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/runner/db"
)

// write inserts or changes a random row.
func (f *rowFuzz) write() {
	n := 0
	for _, table := range rowTables {
		n += table.n
	}
	n = f.values.IntN(n)
	table := ""
	for _, t := range rowTables {
		if n -= t.n; n < 0 {
			table = t.name
			break
		}
	}
	if len(f.columns[table]) == 0 {
		return
	}
	if f.values.IntN(4) == 0 {
		if table == "enqueue" {
			table = "tasks"
		}
		f.update(table)
		return
	}
	names, row := f.row(table)
	f.exec(fmt.Sprintf(`INSERT INTO %s (%s) VALUES (%s)`, table, strings.Join(names, ", "), f.marks(len(row))), row...)
}

// row returns a random row for a table: some of its columns, and values for
// them.
func (f *rowFuzz) row(table string) (names []string, row []any) {
	large := table == "enqueue" || table == "tasks"
	for _, column := range f.columns[table] {
		if large && f.values.IntN(len(f.columns[table])) > 2 {
			continue
		}
		names, row = append(names, column), append(row, f.value(table, column))
	}
	if large && !slices.Contains(names, "args") {
		names, row = append(names, "args"), append(row, extremeJSON()[f.values.IntN(6)])
	}
	if table == "tasks" { // the table tasks rejects a row without the columns below
		now := time.Now().UnixMilli()
		for _, required := range append(f.stateValues(), []columnValue{{"generation_id", int64(1)}, {"state", "pending"},
			{"queue", "default"},
			{"job", "command"}, {"priority", int64(5)}, {"run_at", now},
			{"max_losses", int64(3)}, {"created_at", now}, {"updated_at", now}}...) {
			if !slices.Contains(names, required.column) {
				names, row = append(names, required.column), append(row, required.value)
			}
		}
	}
	if len(names) == 0 {
		return f.row(table)
	}
	return names, row
}

type columnValue struct {
	column string
	value  any
}

// stateValues returns columns that put a task into a random state, with the
// values that the state requires. Most often the state is pending, which
// requires no columns.
func (f *rowFuzz) stateValues() []columnValue {
	finished := []columnValue{{"attempt", int64(1)}, {"max_attempts", int64(1)}, {"worker", int64(1)},
		{"started_at", f.value("tasks", "started_at")},
		{"finished_at", f.values.from(extremeNumbers)}, {"outcome", f.value("tasks", "outcome")}}
	switch state := f.values.IntN(16); state {
	case 0:
		return []columnValue{{"state", "running"}, {"attempt", int64(1)}, {"max_attempts", int64(1)},
			{"worker", f.values.from(extremeNumbers)},
			{"lease_expires_at", int64(f.values.IntN(2))}, {"started_at", f.value("tasks", "started_at")}}
	case 1:
		return []columnValue{{"state", "blocked"}, {"waits", f.values.from(extremeNumbers)}, {"parts", f.values.from(extremeNumbers)}}
	case 2:
		return []columnValue{{"state", "retrying"}, {"max_attempts", int64(2)}, {"attempt", int64(1)},
			{"run_at", f.value("tasks", "run_at")}}
	case 3:
		return []columnValue{{"state", "scheduled"}, {"generation_id", int64(0)}, {"parts", int64(2)},
			{"run_at", f.value("tasks", "run_at")}}
	case 4, 5, 6:
		return append(finished, columnValue{"state", []string{"completed", "failed", "cancelled"}[state-4]})
	}
	return nil
}

// value returns a random value for a column. It never returns values that pause
// or limit all tasks, because the worker must be able to run the ordinary tasks
// of the test (see type canary).
func (f *rowFuzz) value(table, column string) any {
	for {
		value := f.values.of(column)
		text := fmt.Sprintf("%s", value) // some values are bytes; %s converts them to text, as a PostgreSQL server does
		if (table == "pauses" || table == "limits") && (column == "queue" || column == "name") && (text == "" || text == "command") {
			continue
		}
		// A row in cancel_requests cancels a task, but nothing may cancel a
		// canary (see type canary). So the value is the id of an existing task.
		// A greater id could become the id of a later canary.
		if table == "cancel_requests" && column == "task_id" {
			if value = f.newest(); value == int64(1) {
				value = int64(0)
			}
			return value
		}
		if (column == "task_id" || column == "on_id" || column == "last_task_id") && f.values.IntN(2) == 0 {
			return int64(f.values.IntN(f.accepted + 2))
		}
		return value
	}
}

// update changes some columns of one row. It does not change the tasks that the
// worker must complete (see type canary).
func (f *rowFuzz) update(table string) {
	columns := f.columns[table]
	var sets []string
	var row []any
	for range 1 + f.values.IntN(2) {
		column := columns[f.values.IntN(len(columns))]
		if slices.ContainsFunc(sets, func(s string) bool { return strings.HasPrefix(s, column+" ") }) {
			continue
		}
		row = append(row, f.value(table, column))
		sets = append(sets, column+" = "+f.mark(len(row)))
	}
	key := map[string]string{"tasks": "id", "limits": "name", "pauses": "queue", "schedules": "name", "schedule_inputs": "name",
		"last_ids": "id"}[table]
	if key == "" {
		key = "task_id"
	}
	where := ""
	if table == "tasks" {
		where = ` WHERE queue <> 'canary'`
	}
	f.exec(fmt.Sprintf(`UPDATE %[1]s SET %[2]s WHERE %[3]s IN (SELECT %[3]s FROM %[1]s%[4]s ORDER BY %[3]s DESC LIMIT 1)`, table,
		strings.Join(sets,
			", "), key, where), row...)
}

func (f *rowFuzz) mark(n int) string {
	if !db.ParseAddress(f.address).LocalFile() {
		return "$" + strconv.Itoa(n)
	}
	return "?"
}

func (f *rowFuzz) marks(n int) string {
	var marks []string
	for i := range n {
		marks = append(marks, f.mark(i+1))
	}
	return strings.Join(marks, ", ")
}

// exec runs a statement. It accepts an error, because the database should
// reject some of the values.
func (f *rowFuzz) exec(text string, row ...any) {
	result, err := f.raw.ExecContext(f.Context(), text, row...)
	if err != nil {
		f.rejected[err.Error()[:min(60, len(err.Error()))]]++
		return
	}
	if n, err := result.RowsAffected(); err == nil {
		f.accepted += int(max(n, 1)) // at least 1, because a write to a view reports 0 rows
	}
}
