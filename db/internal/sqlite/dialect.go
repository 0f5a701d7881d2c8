// Package sqlite implements the engine for databases in SQLite files.
package sqlite

import "example.com/runner/db/internal/sqltext"

// fragments are the SQLite versions of the fragments in the statements of package db. Package postgres has a fragment for each of
// them.
var fragments = sqltext.Parts{
	// json_each has a row for each value of the JSON array in the next parameter, with this value in the column named value.
	"json_each": "json_each(?)",
	// json_list collects the values of rows in a JSON array.
	"json_list": "json_group_array",
	// claim_job selects the tasks of one job in a claim. SQLite merges the SELECTs of all jobs in the order of an index, and stops at the
	// limit of the claim.
	"claim_job": "{tasks_of_job}",
	// row_address adds a column with the physical address of the row to the SELECT that a claim makes for one job. It is empty on an engine
	// where the claim finds the selected rows by their ids. same_row is the condition that a row of tasks is one of the selected rows.
	// same_id is the same condition for a claim that knows only the ids of the tasks.
	"row_address": "",
	"same_row":    "tasks.id = next_id",
	"same_id":     "tasks.id = next_id",
	// shard_column is the last column of the key of a counter, and shard is its value. Both are empty on an engine that keeps each counter
	// in one row. On a server a counter has several rows, and its value is their sum.
	"shard_column": "",
	"shard":        "",
	// join_in_order makes the planner join tables in the order in which they are written.
	"join_in_order": "CROSS JOIN",
	// priority_3 is the condition that a task has priority [3]. A statement with this condition orders tasks by priority and id, so that it
	// reads them in the order of the index tasks_pending.
	"priority_3": "priority = ?3",
	// unindexed, before a column, prevents the planner from using an index on that column.
	"unindexed": "+",
	// table_exists reports whether the table named by the next parameter exists.
	"table_exists": "EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?)",
	// like is the operator for a comparison by LIKE that ignores case.
	"like": "LIKE",
	// greatest is the function that returns the greatest of its arguments.
	"greatest": "max",
	// bigint_param is the next parameter, as a 64-bit column of a SELECT.
	"bigint_param": "?",
	// features is a number that tells which features are in use. selectFeatures describes its bits. Index: dependencies_open.
	"features": "EXISTS (SELECT 1 FROM {dependencies} WHERE open = 1) + 2 * EXISTS (SELECT 1 FROM {limits}) + 4 * EXISTS (SELECT 1 " +
		"FROM {pauses}) + 8 * EXISTS (SELECT 1 FROM {cursors})",
	// cancelled_outcome is the stored outcome of the last attempt with another reason and error: the next two parameters.
	"cancelled_outcome": `json_set(coalesce(outcome, '{"duration":0}'), '$.reason', ?, '$.error', ?)`,

	// id_column and id_param give an INSERT the id of the new task. In a file this process computes the id, because it holds the write
	// lock.
	"id_column":    "id, ",
	"id_param":     "?, ",
	"returning_id": "",
	// unless_taken makes an INSERT add no task if an unfinished task has the same unique key. It is empty for a file: this process has
	// checked the key, and no other process can take the key meanwhile, because this process holds the write lock.
	"unless_taken": "",
	"given_ids":    "",

	// Only statements for servers use these fragments, so they are empty here.
	//
	// completions is a table that the server makes from the JSON array in the next parameter: each object of the array becomes a row (for
	// the trait CompletesAsJSON). same_completion is the condition that a row of tasks has the id of a row of completions.
	//
	// plain_arrays is the list of columns of a SELECT that returns one row for each new task (for the trait InsertsArrays). Each column has
	// a parameter: an array with one value for each new task.
	"completions":     "",
	"same_completion": "",
	"plain_arrays":    "",

	// highest_id returns the highest id that a task has or had, or 0 if there was none. It ignores ids of 2^52 and more; see the trigger
	// tasks_deleted.
	"highest_id": "SELECT coalesce(max(id), 0) FROM (SELECT max(id) AS id FROM {tasks} WHERE id < 4503599627370496" +
		" UNION ALL SELECT max(id) FROM {last_ids}) AS ids",
}

// Dialect returns the dialect of a file whose table names begin with prefix.
func Dialect(prefix string) *sqltext.Dialect {
	return &sqltext.Dialect{Prefix: prefix, Fragments: fragments}
}
