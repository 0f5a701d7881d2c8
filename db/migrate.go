package db

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// The schema is the first of the numbered files; those behind it are migrations, each run once, forward only. The number of the last one is the
// version of the schema and stands in the database file as user_version. A database of version 11 is converted by the files in convert.
//
//go:embed schema/*.sql schema/convert/*.sql schema/postgres/*.sql
var embedded embed.FS

// schemaFiles are these files; a test adds a migration to them.
var schemaFiles fs.FS = embedded

// applicationID marks a file as ours (PRAGMA application_id): "Runr".
const applicationID = 0x52756e72

// SchemaVersion returns the version of the schema that this program writes.
func SchemaVersion() int {
	return lastVersion("schema")
}

func lastVersion(dir string) int {
	list := migrationFiles(dir)
	return list[len(list)-1].version
}

// convertedVersion is the one version before the first of the numbered files that can be converted.
const convertedVersion = 11

// migration is a numbered file.
type migration struct {
	version int
	path    string
}

// text returns the template of the statements of a migration.
func (m migration) text() string {
	text, err := fs.ReadFile(schemaFiles, m.path)
	if err != nil {
		panic(err) // it is embedded
	}
	return string(text)
}

// migrationFiles returns the numbered files in a directory, in their order.
func migrationFiles(dir string) []migration {
	names, err := fs.Glob(schemaFiles, dir+"/*.sql") // sorted
	list := make([]migration, len(names))
	for i, name := range names {
		version, invalid := strconv.Atoi(path.Base(name)[:4])
		err = errors.Join(err, invalid)
		list[i] = migration{version, name}
	}
	if err != nil || len(list) == 0 {
		panic(fmt.Sprint("db: schema: ", err)) // it is embedded
	}
	return list
}

// migrationsFrom returns what brings a file of version have up to date, in order. One of convertedVersion is converted by a file before the first
// schema file, and one behind it.
func migrationsFrom(have int) (list []migration) {
	if have == convertedVersion {
		convert, all := migrationFiles("schema/convert"), migrationFiles("schema")
		return slices.Concat(convert[:1], all[:1], convert[1:], all[1:])
	}
	for _, m := range migrationFiles("schema") {
		if m.version > have {
			list = append(list, m)
		}
	}
	return list
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
		return 0, "", &jobs.Error{Kind: jobs.ErrSchema, What: "the tables of " + d.path + " have no prefix",
			Why: []string{"it is a database of runner's own"}, Hint: "Options without a Prefix, or another file"}
	case id == applicationID:
	case id == 0 && have == 0 && tables == 0 && !d.options.Beside:
		return 0, "", nil
	default:
		if have, prefix, err = d.mark(ctx); err != nil {
			return 0, "", err
		}
	}
	if first := migrationFiles("schema")[0].version; have > 0 && have < first && have != convertedVersion {
		return 0, "", &jobs.Error{Kind: jobs.ErrSchema, What: d.path + " was written by an older runner",
			Why: []string{fmt.Sprintf("its schema is %d, this one converts %d and later", have, convertedVersion)}, Hint: "open it once with a runner of schema 11"}
	}
	if want := SchemaVersion(); have > want {
		return 0, "", &jobs.Error{Kind: jobs.ErrSchema, Code: errcode.NewerSchema, Subject: d.path, What: d.path + " was written by a newer runner",
			Why:  []string{fmt.Sprintf("its schema is %d, this one knows %d; opening could damage it", have, want)},
			Hint: "upgrade this program, or use another file"}
	}
	return have, prefix, nil
}

// mark is version for a database of another program.
func (d *DB) mark(ctx context.Context) (have int, prefix string, err error) {
	asked := d.options.Prefix
	if d.sql != nil {
		asked = cmp.Or(d.sql.Prefix, asked)
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
		return 0, "", &jobs.Error{Kind: jobs.ErrSchema, What: d.path + " has tables of runner with several prefixes", Hint: "Options.Prefix"}
	case !d.options.Beside:
		return 0, "", &jobs.Error{Kind: jobs.ErrSchema, Code: errcode.NotRunner, Subject: d.path, What: d.path + " is not a runner database",
			Why: []string{"it is an SQLite database of another program; nothing was changed"}, Hint: "another file"}
	}
	prefix = cmp.Or(asked, DefaultPrefix)
	return 0, prefix, ValidPrefix(prefix)
}

func notOurMark(file string, err error) error {
	return &jobs.Error{Kind: jobs.ErrSchema, What: "the table runner_schema of " + file + " is not runner's", Why: []string{err.Error()}, Err: err}
}

// migrate brings the schema to SchemaVersion in one transaction: after a crash at any point the file has the old schema or
// the new one. It is a no-op when another process was quicker.
func (d *DB) migrate(ctx context.Context) error {
	// An index of millions of rows is sorted in a temporary file. The views and triggers of others go on naming tasks while that is renamed.
	if _, err := d.conn.ExecContext(ctx, "PRAGMA temp_store = FILE; PRAGMA legacy_alter_table = ON"); err != nil {
		return explain(err, d.path)
	}
	defer func() {
		_, _ = d.conn.ExecContext(context.WithoutCancel(ctx), "PRAGMA temp_store = MEMORY; PRAGMA legacy_alter_table = OFF")
	}()
	if _, err := d.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return explain(err, d.path)
	}
	defer func() { _, _ = d.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") }() // an error once committed
	have, _, err := d.version(ctx)
	if err != nil {
		return err
	}
	if have == 0 && d.sql.Prefix != "" {
		if err := d.taken(ctx); err != nil {
			return err
		}
	}
	if have == convertedVersion {
		if err := d.olderWorker(ctx); err != nil {
			return err
		}
	}
	var freezing string
	trigger, name := d.frozenBy()
	if err := noRow(d.conn.QueryRowxContext(ctx, d.sql.Text(trigger), name).Scan(&freezing)); err != nil {
		return explain(err, d.path)
	}
	for _, m := range migrationsFrom(have) {
		if _, err := d.conn.ExecContext(ctx, d.sql.Names(m.text()), sql.Named("prefix", d.sql.Prefix)); err != nil {
			return fmt.Errorf("migration %s: %w", path.Base(m.path), explain(err, d.path))
		}
	}
	if text := frozenIn(freezing); text != "" { // the triggers that say so went with their tables
		for _, statement := range d.freezing(text, text) {
			if _, err := d.conn.ExecContext(ctx, statement); err != nil {
				return explain(err, d.path)
			}
		}
	}
	if d.sql.Prefix == "" {
		_, err = d.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, SchemaVersion()))
	} else if _, err = d.conn.ExecContext(ctx, createMarks); err == nil {
		_, err = d.conn.ExecContext(ctx, insertMark, d.sql.Prefix, SchemaVersion())
	}
	if err != nil {
		return explain(err, d.path)
	}
	_, err = d.conn.ExecContext(ctx, "COMMIT")
	return explain(err, d.path)
}

// olderWorker returns an error while a worker of convertedVersion is running: after the conversion it could write nothing more, and what it executes
// would be executed again.
func (d *DB) olderWorker(ctx context.Context) error {
	if !othersOpen(d.path + "-shm") {
		return nil
	}
	var name string
	var until int64
	err := d.conn.QueryRowxContext(ctx, d.sql.Text(selectAtWork), time.Now().UnixMilli()).Scan(&name, &until)
	if errors.Is(err, sql.ErrNoRows) {
		return nil
	}
	if err != nil {
		return explain(err, d.path)
	}
	return &jobs.Error{Kind: jobs.ErrBusy, What: d.path + " is in use by an older runner", Why: []string{"its worker " + name + " is running",
		"it could not write the results of its tasks after the upgrade"}, Hint: "again when that worker has stopped"}
}

// taken returns an error when the other program has something of a name that we need.
func (d *DB) taken(ctx context.Context) error {
	list := made()
	for i := range list {
		list[i] = d.sql.Prefix + list[i]
	}
	var taken []string
	if err := d.conn.SelectContext(ctx, &taken, selectTaken, jsonText(list)); err != nil || len(taken) == 0 {
		return explain(err, d.path)
	}
	return &jobs.Error{Kind: jobs.ErrConflict, What: d.path + " has a table or index " + strings.Join(taken, ", ") + " already",
		Why: []string{"it is not runner's; nothing was changed"}, Hint: "another Options.Prefix"}
}
