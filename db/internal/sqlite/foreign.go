package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/jmoiron/sqlx"

	"example.com/runner/db/internal/sqltext"
	"example.com/runner/db/schema"
	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// selectSchema lists the tables, indexes, triggers and views of a file. It leaves out the indexes that SQLite makes for constraints; they
// have no SQL text.
const selectSchema = `SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name`

// object is a table, an index, a trigger or a view.
type object struct {
	Type  string `db:"type"`
	Name  string `db:"name"`
	Table string `db:"tbl_name"`
	Text  string `db:"sql"`
}

// ownSum is the hash of the schema that ownSchema returns for a dialect without a prefix. It is a constant, because computing the hash
// would delay the start of each worker by 20 ms.
const ownSum = "61b2350e98e5dabfd87193cd3edca720b40ed3b967fd102eaecd63221db06cb5"

// sum returns a hash of a schema.
func sum(objects []object) string {
	h := sha256.New()
	for _, o := range objects {
		fmt.Fprintf(h, "%q %q %q %q\n", o.Type, o.Name, o.Table, o.Text)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ownSchema returns the schema that this program creates in a dialect.
func ownSchema(ctx context.Context, dialect *sqltext.Dialect) ([]object, error) {
	memory, err := sqlx.Open("sqlite", "file::memory:")
	if err != nil {
		return nil, err
	}
	defer memory.Close()
	conn, err := memory.Connx(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	for _, m := range schema.MigrationsFrom(0) {
		if _, err := conn.ExecContext(ctx, dialect.Names(m.Text())); err != nil {
			return nil, err
		}
	}
	var own []object
	return own, conn.SelectContext(ctx, &own, selectSchema)
}

// CheckSchema returns an error of kind ErrSchema if somebody has changed runner's tables, indexes, triggers or views. It returns the same
// error if somebody has added a trigger or an index to one of runner's tables, because each write of a worker would run such a trigger.
// Other tables, views and triggers in the same file are allowed.
func (d *File) CheckSchema(ctx context.Context) error {
	var all []object
	if err := d.read.SelectContext(ctx, &all, selectSchema); err != nil {
		return d.Explain(err)
	}
	if sum(all) == ownSum { // the usual case: the file has only runner's tables, and their schema is unchanged
		return nil
	}
	own, err := ownSchema(ctx, d.sql)
	if err != nil {
		return err
	}
	expected, tables := map[string]object{}, map[string]bool{}
	for _, o := range own {
		expected[o.Name] = o
		tables[strings.ToLower(o.Table)] = true
	}
	problem := func(code, what, hint string) error {
		return &jobs.Error{Kind: jobs.ErrSchema, Code: code, Subject: d.path, What: d.path + " " + what, Hint: hint,
			Why: []string{"whoever did that controls what workers run; nothing was changed"}}
	}
	for _, o := range all {
		want, ours := expected[o.Name]
		switch {
		case ours && o != want:
			return problem(errcode.NotRunner, fmt.Sprintf("has another %s than runner's", o.Name), "another file")
		case !ours && tables[strings.ToLower(o.Table)]:
			return problem(errcode.ForeignObject, fmt.Sprintf("has %s %q on runner's %s", article(o.Type), o.Name, o.Table),
				fmt.Sprintf("DROP %s %q, if you know whose it is", strings.ToUpper(o.Type), o.Name))
		}
		delete(expected, o.Name)
	}
	for name := range expected {
		return problem(errcode.NotRunner, fmt.Sprintf("lacks runner's %s", name), "another file")
	}
	return nil
}

// selectTables lists the tables of a file, each with its columns in their order.
const selectTables = `SELECT name, (SELECT group_concat(name, ' ') FROM pragma_table_info(t.name)) AS columns
	FROM sqlite_schema AS t WHERE type = 'table' AND name NOT LIKE 'sqlite\_%' ESCAPE '\' ORDER BY name`

// selectTablesLength returns the total length of the texts that created the tables of a file.
const selectTablesLength = `SELECT sum(length(sql)) FROM sqlite_schema WHERE type = 'table'`

// ownTablesLength is the length that selectTablesLength returns for the schema without a prefix.
const ownTablesLength = 14888

// table is a table with its columns, separated by spaces.
type table struct {
	Name    string `db:"name"`
	Columns string `db:"columns"`
}

// ownTables lists the tables of the schema without a prefix, by name.
var ownTables = []table{
	{"attempts", "task_id generation_id attempt state counted worker started_at finished_at outcome"},
	{"cancel_requests", "task_id generation_id requested_at now text"},
	{"counter_hours", "queue state hour n"},
	{"counters", "queue state minute n"},
	{"cursors", "name seq owner lease_expires_at created_at"},
	{"dependencies", "task_id on_id any_outcome open"},
	{"finished", "seq task_id generation_id job queue label schedule state attempt outcome created_at started_at finished_at"},
	{"finished_seq", "seq"},
	{"holds", "task_id held_since held_by reason"},
	{"inputs", "task_id data"},
	{"last_ids", "id"},
	{"limits", "kind name running rate per burst level filled_at due_at updated_at"},
	{"metadata_index", "key value task_id"},
	{"metadata_keys", "key build filled"},
	{"open_failures", "subject failed_at"},
	{"output", "task_id generation_id seq attempt stream at data dropped_bytes"},
	{"pauses", "queue paused_at paused_by reason until_at"},
	{"progress_reports", "task_id generation_id report"},
	{"queue_hooks", "queue hooks"},
	{"schedule_inputs", "name data"},
	{"schedule_open", "schedule task_id"},
	{"schedules", "name cron zone overlap catch_up catch_up_window jitter paused_at paused_by next_at last_at last_task_id " +
		"kept_state kept_duration skipped created_at updated_at task boots alert_after alerted_at slow_task_id " +
		"kept_success"},
	{"steps", "task_id seq generation_id name value wake_at at"},
	{"task_changes", "task_id seq made_at made_by action text"},
	{"tasks", "id generation_id state queue job args label priority run_at expires_at attempt max_attempts losses " +
		"max_losses worker lease_expires_at unique_key lane schedule tick waits parts created_at created_by " +
		"updated_at started_at finished_at options outcome result lane_slot batch"},
	{"totals", "queue job result n"},
	{"unique_keys", "unique_key task_id free_at states"},
	{"workers", "number id name host boot_id pid user version slots queues jobs state lease started_at beat_at ended_at uid " +
		"pid_namespace leaked"},
}

// checkTables returns an error unless the file has all tables of the schema with all their columns. The version number does not guarantee
// this, because unreleased builds may have written the same number for other tables. Without this check, some commands would fail on such a
// file in the middle of their work. checkTables first compares only the total length of the texts that created the tables. It reads the
// columns only if the length differs, because that takes a twentieth of the time of "runner enqueue".
func (d *File) checkTables(ctx context.Context) error {
	var length int
	if err := d.conn.GetContext(ctx, &length, selectTablesLength); err != nil {
		return d.Explain(err)
	}
	if length == ownTablesLength {
		return nil
	}
	var all []table
	if err := d.conn.SelectContext(ctx, &all, selectTables); err != nil {
		return d.Explain(err)
	}
	for _, own := range ownTables {
		if !slices.Contains(all, table{d.sql.Prefix + own.Name, own.Columns}) {
			return &jobs.Error{Kind: jobs.ErrSchema, Code: errcode.UnreleasedSchema, Subject: d.path,
				What: fmt.Sprintf("%s does not have the tables of schema %d", d.path, schema.Version(schema.SQLite)),
				Why: []string{"the table " + own.Name + " is missing or has other columns",
					"an unreleased build of runner made the file; there is no upgrade; nothing was changed"},
				Hint: "another file, or the build that made this file"}
		}
	}
	return nil
}

func article(kind string) string {
	if kind == "index" {
		return "an index"
	}
	return "a " + kind
}

// maxUncleanSize is the greatest size of a file that is checked after a crash. The check of a file of that size takes half a second.
const maxUncleanSize = 100 << 20

// Unclean implements engine.Shared.
func (d *File) Unclean() bool {
	size, _ := d.Size()
	return d.logSizeBefore > 0 && size < maxUncleanSize && !othersOpen(d.sharedPath)
}
