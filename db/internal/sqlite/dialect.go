// Package sqlite implements the engine for databases in SQLite files.
package sqlite

import "example.com/runner/db/internal/sqltext"

// fragments are the SQLite versions of the fragments in package db's
// statements. Package postgres has one for each of them.
var fragments = sqltext.Parts{
	// a row for each value of the JSON array in the next parameter, in the
	// column value
	"json_each": "json_each(?)",
	// collects the values of rows in a JSON array
	"json_list": "json_group_array",
	// selects the tasks of one job in a claim. SQLite merges the SELECTs of all
	// jobs in the order of an index, and stops at the claim's limit
	"claim_job": "{tasks_of_job}",
	// row_address adds the row's physical address to the SELECT that a claim
	// makes for one job, where the claim doesn't find the rows by id. same_row
	// says that a row of tasks is one of them, and same_id does for a claim
	// that knows only the ids
	"row_address": "",
	"same_row":    "tasks.id = next_id",
	"same_id":     "tasks.id = next_id",
	// last column of a counter's key and its value, where a counter is the sum
	// of several rows, as on a server
	"shard_column": "",
	"shard":        "",
	// makes the planner join tables in the order in which they are written
	"join_in_order": "CROSS JOIN",
	// says that a task has priority [3], in a statement that orders tasks by
	// priority and id, so that it reads them in the order of the index
	// tasks_pending
	"priority_3": "priority = ?3",
	// before a column: keeps the planner from an index on it
	"unindexed": "+",
	// whether the table named by the next parameter exists
	"table_exists": "EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?)",
	// LIKE that ignores case
	"like": "LIKE",
	// greatest of its arguments
	"greatest": "max",
	// next parameter, as a 64-bit column of a SELECT
	"bigint_param": "?",
	// a task's own retention in milliseconds, or NULL, which is also for what
	// plain SQL has written and isn't an integer
	"keep_for": "CASE typeof(options ->> 'keep_for') WHEN 'integer' THEN options ->> 'keep_for' END",
	// which features are in use; selectFeatures describes the bits. Index:
	// dependencies_open
	"features": "EXISTS (SELECT 1 FROM {dependencies} WHERE open = 1) + 2 * EXISTS (SELECT 1 FROM {limits}) + 4 * EXISTS (SELECT 1 " +
		"FROM {pauses}) + 8 * EXISTS (SELECT 1 FROM {cursors})",
	// outcome of the last attempt, with the reason and the error in the next
	// parameters
	"cancelled_outcome": `json_set(CASE WHEN json_type(outcome) = 'object' THEN outcome
		WHEN started_at IS NULL THEN '{}' ELSE '{"duration":0}' END, '$.reason', ?, '$.error', ?)`,

	// give an INSERT the id of the new task. In a file this process computes
	// it, because it holds the write lock
	"id_column":    "id, ",
	"id_param":     "?, ",
	"returning_id": "",
	// makes an INSERT add no task whose unique key is taken. In a file this
	// process has checked that, and nobody else can take the key meanwhile
	"unless_taken": "",
	"given_ids":    "",

	// Only servers need the following ones. completions is a table made from
	// the JSON array in the next parameter, with a row for each object, and
	// same_completion says that a row of tasks has the id of one of them (trait
	// CompletesAsJSON). plain_arrays are the columns of a SELECT with a row for
	// each new task, each from an array of values (trait InsertsArrays).
	"completions":     "",
	"same_completion": "",
	"plain_arrays":    "",

	// highest id that a task has or had, or 0. Ids of 2^52 and more don't
	// count; see the trigger tasks_deleted
	"highest_id": "SELECT coalesce(max(id), 0) FROM (SELECT max(id) AS id FROM {tasks} WHERE id < 4503599627370496" +
		" UNION ALL SELECT max(id) FROM {last_ids}) AS ids",
}

// Dialect returns the dialect of a file whose table names begin with prefix.
func Dialect(prefix string) *sqltext.Dialect {
	return &sqltext.Dialect{Prefix: prefix, Fragments: fragments}
}
