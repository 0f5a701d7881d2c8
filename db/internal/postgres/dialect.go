// Package postgres implements the engine for databases on PostgreSQL servers.
// The driver is in package db/pgdriver, so that programs that use only files
// don't link it.
package postgres

import "example.com/runner/db/internal/sqltext"

// fragments are PostgreSQL's versions of the fragments that package sqlite
// explains.
var fragments = sqltext.Parts{
	"json_each": "jsonb_array_elements(CAST(? AS jsonb)) AS json_each (value)",
	"json_list": "json_agg",
	// A UNION can't lock rows. So the SELECT of each job locks what it selects,
	// at most as many tasks as the claim may take, and skips what another
	// transaction locked.
	"claim_job": "SELECT * FROM ({tasks_of_job} ORDER BY priority DESC, id LIMIT ?{after_parts} FOR UPDATE SKIP LOCKED) AS job",

	// The claim has locked the row, so its address stays valid and finds it
	// without an index.
	"row_address": ", tasks.ctid AS next_ctid",
	"same_row":    "tasks.ctid = next_ctid",
	// A session may have prepared the statement while the table was small. With
	// tasks.id = next_id the planner would then compare all tasks with the
	// claimed ids. With ANY it must use the index.
	"same_id": "tasks.id = ANY (ARRAY[next_id])",

	// With priority = ?3 the planner would drop priority from the ORDER BY, and
	// read the tasks of all states in the order of the ids.
	"priority_3": "priority BETWEEN ?3 AND ?3",

	// Each session adds to one of a counter's 16 rows, so that few wait for the
	// same row's lock.
	"shard_column": "shard, ",
	"shard":        "pg_backend_pid() % 16, ",

	"join_in_order": "JOIN",
	"unindexed":     "'' || ",
	"table_exists":  "to_regclass(?) IS NOT NULL",
	"like":          "ILIKE",
	"greatest":      "greatest",
	"bigint_param":  "CAST(? AS bigint)",
	"keep_for":      "CASE WHEN options ->> 'keep_for' ~ '^[0-9]{1,18}$' THEN CAST(options ->> 'keep_for' AS bigint) END",
	"features": "CASE WHEN EXISTS (SELECT 1 FROM {dependencies} WHERE open = 1) THEN 1 ELSE 0 END +\n\tCASE WHEN EXISTS " +
		"(SELECT 1 FROM {limits}) THEN 2 ELSE 0 END + CASE WHEN EXISTS (SELECT 1 FROM {pauses}) THEN 4 ELSE 0 END +\n\tCASE WHEN EXISTS " +
		"(SELECT 1 FROM {cursors}) THEN 8 ELSE 0 END",
	"cancelled_outcome": `CAST(CAST(CASE WHEN json_typeof(outcome) = 'object' THEN outcome
		WHEN started_at IS NULL THEN '{}' ELSE '{"duration":0}' END AS jsonb) ||
		jsonb_build_object('reason', CAST(? AS text), 'error', CAST(? AS text)) AS json)`,

	// The server assigns ids. Only a copy of a row from another database gives
	// one.
	"id_column":    "",
	"id_param":     "",
	"returning_id": " RETURNING id",
	"unless_taken": " ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL AND finished_at IS NULL DO NOTHING",
	"given_ids":    " OVERRIDING SYSTEM VALUE",

	"completions": `json_to_recordset(CAST(? AS json)) AS d (id bigint, generation_id bigint, outcome json, result text, started_at bigint,
	finished_at bigint)`,
	"same_completion": "tasks.id = ANY (ARRAY[d.id])",
	// In the FROM clause, the server would first store the rows of unnest: 0.7
	// µs more for each task.
	"plain_arrays": `unnest(CAST(? AS text[])), unnest(CAST(? AS text[])), unnest(CAST(? AS text[])), unnest(CAST(? AS text[])),
	unnest(CAST(? AS text[])), unnest(CAST(? AS bigint[])), unnest(CAST(? AS bigint[])), unnest(CAST(? AS bigint[])),
	unnest(CAST(? AS bigint[])), unnest(CAST(? AS bigint[])), unnest(CAST(? AS json[])), unnest(CAST(? AS bigint[])),
	unnest(CAST(? AS text[])), unnest(CAST(? AS bigint[])), unnest(CAST(? AS bigint[]))`,

	"highest_id": "SELECT coalesce(max(id), 0) FROM {tasks}",
}

// Dialect returns the dialect of a server that has runner's tables in schema.
func Dialect(schema string) *sqltext.Dialect {
	return &sqltext.Dialect{Prefix: schema + ".", Numbered: true, Fragments: fragments}
}
