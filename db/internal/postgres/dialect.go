// Package postgres implements the parts of package db that are specific to databases on PostgreSQL servers. It contains no driver. The
// driver is in package db/pgdriver, so that programs that only use files do not link it.
package postgres

import "example.com/runner/db/internal/sqltext"

// fragments are the parts of SQL statements that are specific to PostgreSQL. Package sqlite explains each of them.
var fragments = sqltext.Parts{
	"json_each": "jsonb_array_elements(CAST(? AS jsonb)) AS json_each (value)",
	"json_list": "json_agg",
	// A UNION cannot lock rows. So the SELECT of each job locks the tasks that it selects, at most as many as the claim may take. It skips
	// tasks that another transaction has locked.
	"claim_job": "SELECT * FROM ({tasks_of_job} ORDER BY priority DESC, id LIMIT ?{after_parts} FOR UPDATE SKIP LOCKED) AS job",

	// row_address adds a column with the address (ctid) of a row. The claim has locked this row, so its address stays valid, and the
	// claim finds the row by the address, without an index.
	"row_address": ", tasks.ctid AS next_ctid",
	"same_row":    "tasks.ctid = next_ctid",
	// A session may have prepared the statement while the table was small. With "tasks.id = next_id" the planner would then compare all
	// tasks with the claimed ids. With ANY the planner must use the index.
	"same_id": "tasks.id = ANY (ARRAY[next_id])",

	// BETWEEN replaces the condition "priority = ?3". With that condition the planner would drop priority from the ORDER BY, and read the
	// tasks of all states in the order of the ids.
	"priority_3": "priority BETWEEN ?3 AND ?3",

	// Each session adds to one of 16 rows of a counter, so that few sessions wait for the lock of the same row.
	"shard_column": "shard, ",
	"shard":        "pg_backend_pid() % 16, ",

	"join_in_order": "JOIN",
	"unindexed":     "'' || ",
	"table_exists":  "to_regclass(?) IS NOT NULL",
	"like":          "ILIKE",
	"greatest":      "greatest",
	"bigint_param":  "CAST(? AS bigint)",
	"features": "CASE WHEN EXISTS (SELECT 1 FROM {dependencies} WHERE open = 1) THEN 1 ELSE 0 END +\n\tCASE WHEN EXISTS " +
		"(SELECT 1 FROM {limits}) THEN 2 ELSE 0 END + CASE WHEN EXISTS (SELECT 1 FROM {pauses}) THEN 4 ELSE 0 END +\n\tCASE WHEN EXISTS " +
		"(SELECT 1 FROM {cursors}) THEN 8 ELSE 0 END",
	"cancelled_outcome": `CAST(coalesce(CAST(outcome AS jsonb), '{"duration":0}') ||
		jsonb_build_object('reason', CAST(? AS text), 'error', CAST(? AS text)) AS json)`,

	// The server assigns ids. A statement gives an id only when it copies a row from another database.
	"id_column":    "",
	"id_param":     "",
	"returning_id": " RETURNING id",
	"unless_taken": " ON CONFLICT (unique_key) WHERE unique_key IS NOT NULL AND finished_at IS NULL DO NOTHING",
	"given_ids":    " OVERRIDING SYSTEM VALUE",

	"completions": `json_to_recordset(CAST(? AS json)) AS d (id bigint, generation_id bigint, outcome json, result text, started_at bigint,
	finished_at bigint)`,
	"same_completion": "tasks.id = ANY (ARRAY[d.id])",
	// The SELECT calls unnest in its list of columns. In the FROM clause, unnest would take 0.7 µs more for each task, because the server
	// would first store the rows of unnest.
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
