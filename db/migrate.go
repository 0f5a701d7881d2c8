package db

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"example.com/runner/jobs"
)

// Migrations are numbered files, each run once, forward only. The number of the last one is the schema's version and stands
// in the file as user_version.
//
//go:embed migrations/*.sql
var migrations embed.FS

// applicationID marks a file as ours (PRAGMA application_id): "Runr".
const applicationID = 0x52756e72

// SchemaVersion returns the version of the schema that this program writes.
func SchemaVersion() int { return len(migrationNames()) }

func migrationNames() []string {
	names, err := fs.Glob(migrations, "migrations/*.sql")
	if err != nil || len(names) == 0 {
		panic("db: no migrations embedded")
	}
	return names // Glob sorts
}

const readVersion = `SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema) FROM pragma_application_id, pragma_user_version`

// What stands in a database of another program in place of application_id and user_version, which are its own.
const (
	hasMarks    = `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'runner_schema'`
	selectMarks = `SELECT prefix, version FROM runner_schema ORDER BY prefix`
	createMarks = `CREATE TABLE IF NOT EXISTS runner_schema (
  prefix  TEXT PRIMARY KEY,  -- of the names of runner's tables
  version INTEGER NOT NULL   -- of their schema
) STRICT, WITHOUT ROWID`
	insertMark = `INSERT INTO runner_schema (prefix, version) VALUES (?, ?) ON CONFLICT (prefix) DO UPDATE SET version = excluded.version`
)

// selectTaken lists which of the names [1], a JSON array, are those of something in the file.
const selectTaken = `SELECT name FROM sqlite_schema WHERE lower(name) IN (SELECT lower(value) FROM json_each(?)) ORDER BY name LIMIT 3`

// version returns the version of the file's schema, 0 where there is none yet, and the prefix of its names. A file that is not ours and
// where we are not to be beside its tables, or that a newer program wrote, is refused, and nothing is written to it.
func (d *DB) version(ctx context.Context) (have int, prefix string, err error) {
	var id, tables int
	if err := d.conn.QueryRowxContext(ctx, readVersion).Scan(&id, &have, &tables); err != nil {
		return 0, "", explain(err, d.path)
	}
	switch {
	case id == applicationID && d.options.Prefix != "":
		return 0, "", &jobs.Problem{Kind: jobs.ErrSchema, What: "the tables of " + d.path + " have no prefix",
			Why: []string{"it is a database of runner's own"}, Try: "Options without a Prefix, or another file"}
	case id == applicationID:
	case id == 0 && have == 0 && tables == 0 && !d.options.Beside:
		return 0, "", nil
	default:
		if have, prefix, err = d.mark(ctx); err != nil {
			return 0, "", err
		}
	}
	if want := SchemaVersion(); have > want {
		return 0, "", &jobs.Problem{Kind: jobs.ErrSchema, What: d.path + " was written by a newer runner",
			Why: []string{fmt.Sprintf("its schema is %d, this one knows %d; opening could damage it", have, want)},
			Try: "upgrade this binary, or --db another file"}
	}
	return have, prefix, nil
}

// mark is version for a database of another program.
func (d *DB) mark(ctx context.Context) (have int, prefix string, err error) {
	asked := d.options.Prefix
	if d.names != nil {
		asked = d.names.prefix
	}
	var marks []struct {
		Prefix  string `db:"prefix"`
		Version int    `db:"version"`
	}
	var some bool
	if err = d.conn.QueryRowxContext(ctx, hasMarks).Scan(&some); err == nil && some {
		err = d.conn.SelectContext(ctx, &marks, selectMarks)
	}
	if code(err) == sqlite3.SQLITE_ERROR { // it has other columns
		return 0, "", notOurMark(d.path, err)
	}
	if err != nil {
		return 0, "", explain(err, d.path)
	}
	for _, m := range marks {
		if strings.EqualFold(m.Prefix, asked) || asked == "" && len(marks) == 1 { // as SQLite compares names
			if err := ValidPrefix(m.Prefix); err != nil {
				return 0, "", notOurMark(d.path, err)
			}
			return m.Version, m.Prefix, nil
		}
	}
	switch {
	case !d.options.Beside && len(marks) > 1:
		return 0, "", &jobs.Problem{Kind: jobs.ErrSchema, What: d.path + " has tables of runner with several prefixes", Try: "Options.Prefix"}
	case !d.options.Beside:
		return 0, "", &jobs.Problem{Kind: jobs.ErrSchema, What: d.path + " is not a runner database",
			Why: []string{"it is an SQLite database of another program; nothing was changed"}, Try: "--db another file"}
	}
	prefix = cmp.Or(asked, DefaultPrefix)
	return 0, prefix, ValidPrefix(prefix)
}

func notOurMark(file string, err error) error {
	return &jobs.Problem{Kind: jobs.ErrSchema, What: "the table runner_schema of " + file + " is not runner's", Why: []string{err.Error()}, Err: err}
}

// migrate brings the schema to SchemaVersion in one transaction: after a crash at any point the file has the old schema or
// the new one. It is a no-op when another process was quicker.
func (d *DB) migrate(ctx context.Context) error {
	if _, err := d.conn.ExecContext(ctx, "PRAGMA temp_store = FILE"); err != nil { // an index of millions of rows is sorted there
		return explain(err, d.path)
	}
	defer func() { _, _ = d.conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA temp_store = MEMORY") }()
	if _, err := d.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return explain(err, d.path)
	}
	defer func() { _, _ = d.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") }() // an error once committed
	have, _, err := d.version(ctx)
	if err != nil {
		return err
	}
	if have == 0 && d.names != nil {
		if err := d.taken(ctx); err != nil {
			return err
		}
	}
	for number, name := range migrationNames() {
		if number < have {
			continue
		}
		text, err := migrations.ReadFile(name)
		if err != nil {
			return err
		}
		if _, err := d.conn.ExecContext(ctx, string(text)); err != nil {
			return fmt.Errorf("migration %s: %w", path.Base(name), explain(err, d.path))
		}
	}
	if d.names == nil {
		_, err = d.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, SchemaVersion()))
	} else if _, err = d.conn.ExecContext(ctx, createMarks); err == nil {
		_, err = d.conn.ExecContext(ctx, insertMark, d.names.prefix, SchemaVersion())
	}
	if err == nil {
		_, err = d.conn.ExecContext(ctx, lowerSequence, d.prefix()+"tasks")
	}
	if err != nil {
		return explain(err, d.path)
	}
	_, err = d.conn.ExecContext(ctx, "COMMIT")
	return explain(err, d.path)
}

// lowerSequence lets the next task have the id behind the highest one, where the table of sequences says of table [1] that the ids are used
// up. A task that plain SQL gave the highest number that there is leaves that behind, even when it is deleted.
const lowerSequence = `UPDATE sqlite_sequence SET seq = max((SELECT coalesce(max(id), 0) FROM tasks), (SELECT coalesce(max(task_id), 0) FROM attempt_rows
	WHERE task_id <= 9007199254740992)) WHERE name = ? AND seq > 9007199254740992`

// taken returns an error when the other program has something of a name that we need.
func (d *DB) taken(ctx context.Context) error {
	list := made()
	for i := range list {
		list[i] = d.names.prefix + list[i]
	}
	wanted, err := json.Marshal(list)
	if err != nil {
		return err
	}
	var taken []string
	if err := d.conn.SelectContext(ctx, &taken, selectTaken, string(wanted)); err != nil || len(taken) == 0 {
		return explain(err, d.path)
	}
	return &jobs.Problem{Kind: jobs.ErrConflict, What: d.path + " has a table or index " + strings.Join(taken, ", ") + " already",
		Why: []string{"it is not runner's; nothing was changed"}, Try: "another Options.Prefix"}
}
