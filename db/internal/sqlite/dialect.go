// Package sqlite implements the engine for databases in SQLite files.
package sqlite

import "example.com/runner/db/internal/sqltext"

// fragments are the SQLite versions of the fragments in the statements of package db. Package postgres has a fragment for each of
// them.
var fragments = sqltext.Parts{
	// json_each has a row for each value of the JSON array in the next parameter, with the value in its column value.
	"json_each": "json_each(?)",
	// json_list collects the values of rows in a JSON array.
	"json_list": "json_group_array",
	// claim_job selects the tasks of one job in a claim. SQLite merges the SELECTs of all jobs in the order of an index, and stops at the
	// limit of the claim.
	"claim_job": "{tasks_of_job}",
	// row_address is a column of the SELECT of one job: the address of the row, if a claim finds its rows by their addresses. same_row is
	// the condition that a row is one of those that the claim has selected. same_id is this condition for a claim that knows only the ids.
	"row_address": "",
	"same_row":    "tasks.id = next_id",
	"same_id":     "tasks.id = next_id",
	// shard_column is the last column of the key of a counter, and shard is its value, if several rows hold parts of the same counter.
	"shard_column": "",
	"shard":        "",
	// join_in_order makes the planner join tables in the order in which they are written.
	"join_in_order": "CROSS JOIN",
	// priority_3 is the condition that a task has priority [3]. Its statement orders by priority and id, the end of index tasks_pending.
	"priority_3": "priority = ?3",
	// unindexed, before a column, prevents the planner from using an index on that column.
	"unindexed": "+",
	// table_exists reports whether the table named by the next parameter exists.
	"table_exists": "EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?)",
	// like compares texts without regard to case.
	"like": "LIKE",
	// greatest is the function that returns the greatest of its arguments.
	"greatest": "max",
	// bigint_param is the next parameter as the value of a column.
	"bigint_param": "?",
	// features is a number with the bits of selectFeatures. Index: dependencies_open.
	"features": "EXISTS (SELECT 1 FROM {dependencies} WHERE open = 1) + 2 * EXISTS (SELECT 1 FROM {limits}) + 4 * EXISTS (SELECT 1 " +
		"FROM {pauses}) + 8 * EXISTS (SELECT 1 FROM {queue_hooks}) + 16 * EXISTS (SELECT 1 FROM {cursors})",
	// old_snapshot reports whether the transaction may have begun to read before another transaction that has committed since. In a file, a
	// transaction that has begun so early cannot write.
	"old_snapshot": "FALSE",
	// cancelled_outcome is the outcome of the last attempt with the reason cancelled and the error in the next parameter.
	"cancelled_outcome": `json_set(coalesce(outcome, '{"duration":0}'), '$.reason', 'cancelled', '$.error', ?)`,

	// The id of a new task is a parameter, since only the holder of the write lock takes ids.
	"id_column":    "id, ",
	"id_param":     "?, ",
	"returning_id": "",
	// unless_taken makes an INSERT add no task if an unfinished task has the same unique key. In a file no other process can take the key
	// after this one has checked it.
	"unless_taken": "",
	"given_ids":    "",

	// These marks are only in statements that package db does not run in a file. completions has a row for each object of the JSON array in
	// the next parameter, for statements that need the trait CompletesAsJSON. same_completion is the condition that a task is one of them.
	// plain_arrays lists the columns of insertArrays, which needs the trait InsertsArrays. Each parameter is an array with a value for each
	// task.
	"completions":     "",
	"same_completion": "",
	"plain_arrays":    "",

	// highest_id returns the highest id that a task has or had, or 0 if there was none. It ignores ids of 2^52 and more; see the trigger
	// tasks_deleted.
	"highest_id": "SELECT coalesce(max(id), 0) FROM (SELECT max(id) AS id FROM {tasks} WHERE id < 4503599627370496" +
		" UNION ALL SELECT max(id) FROM {last_ids}) AS ids",

	// samples lists the waits and durations of the first [4] tasks that ended in each of [3] steps of [2] milliseconds since [1].
	// Index: tasks_finished, with a seek for each step.
	"samples": `WITH RECURSIVE stretches (step, at) AS (SELECT 0, ?1 UNION ALL SELECT step + 1, at + ?2 FROM stretches WHERE step + 1 < ?3)
SELECT step, tasks.started_at - tasks.run_at AS wait, tasks.finished_at - tasks.started_at AS duration FROM stretches CROSS JOIN {tasks}
	ON tasks.id IN
	(SELECT id FROM {tasks} AS ended WHERE ended.finished_at >= stretches.at AND ended.finished_at < stretches.at + ?2 LIMIT 0 + ?4)
WHERE tasks.started_at IS NOT NULL`,
}

// Dialect returns the dialect of a file whose table names begin with prefix.
func Dialect(prefix string) *sqltext.Dialect {
	return &sqltext.Dialect{Prefix: prefix, Fragments: fragments}
}
