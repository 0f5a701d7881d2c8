package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"strings"

	sqlite3 "modernc.org/sqlite/lib"

	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/sqltext"
	"example.com/runner/db/schema"
	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// ApplicationID marks a file as one of runner (PRAGMA application_id): "Runr".
const ApplicationID = 0x52756e72

const readVersion = `SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
	FROM pragma_application_id, pragma_user_version`

// setOwnVersion marks a file as one of runner and sets the version of its
// schema.
var setOwnVersion = sqltext.Command(`PRAGMA application_id = {id}; PRAGMA user_version = {version}`)

// These statements are about the table runner_schema in a database of another
// program; see names.go.
const (
	hasSchemaTable    = `SELECT count(*) FROM sqlite_schema WHERE type = 'table' AND name = 'runner_schema'`
	selectSchemas     = `SELECT prefix, version FROM runner_schema ORDER BY prefix`
	CreateSchemaTable = `CREATE TABLE IF NOT EXISTS runner_schema (
  prefix  TEXT PRIMARY KEY,  -- of the names of runner's tables
  version INTEGER NOT NULL   -- of their schema
) STRICT, WITHOUT ROWID`
	setSchemaVersion = `INSERT INTO runner_schema (prefix, version) VALUES (?, ?)
	ON CONFLICT (prefix) DO UPDATE SET version = excluded.version`
)

// selectUsedNames lists those of the names [1], a JSON array, that a table,
// index, trigger or view of the file has.
const selectUsedNames = `SELECT name FROM sqlite_schema WHERE lower(name) IN (SELECT lower(value) FROM json_each(?)) ORDER BY name LIMIT 3`

// version returns the version of the file's schema (0 if it has none) and the
// prefix of its names. It rejects a file that a newer program wrote, and one of
// another program, unless Options.Beside allows runner's tables in it.
func (d *File) version(ctx context.Context) (have int, prefix string, err error) {
	var id, tables int
	if err := d.conn.QueryRowxContext(ctx, readVersion).Scan(&id, &have, &tables); err != nil {
		return 0, "", d.Explain(err)
	}

	switch {
	case id == ApplicationID && d.options.Prefix != "":
		return 0, "", &jobs.Error{Kind: jobs.ErrSchema, What: "the tables of " + d.path + " have no prefix",
			Why: []string{"it is a database of runner's own"}, Hint: "Options without a Prefix, or another file"}
	case id == ApplicationID:
	case id == 0 && have == 0 && tables == 0 && !d.options.Beside:
		return 0, "", nil
	default:
		if have, prefix, err = d.prefixedVersion(ctx); err != nil {
			return 0, "", err
		}
	}

	if want := schema.Version(schema.SQLite); have > want {
		return 0, "", engine.Newer(d.path, errcode.NewerSchema, have, want, "upgrade this program, or use another file")
	}

	return have, prefix, nil
}

// prefixedVersion is version for a database of another program.
func (d *File) prefixedVersion(ctx context.Context) (have int, prefix string, err error) {
	requested := d.options.Prefix
	if d.sql != nil {
		requested = cmp.Or(d.sql.Prefix, requested)
	}

	var schemas []struct {
		Prefix  string `db:"prefix"`
		Version int    `db:"version"`
	}
	var exists bool
	if err = d.conn.QueryRowxContext(ctx, hasSchemaTable).Scan(&exists); err == nil && exists {
		err = d.conn.SelectContext(ctx, &schemas, selectSchemas)
	}
	if code(err) == sqlite3.SQLITE_ERROR { // runner_schema has other columns
		return 0, "", foreignSchemaTable(d.path, err)
	}
	if err != nil {
		return 0, "", d.Explain(err)
	}

	for _, s := range schemas {
		if strings.EqualFold(s.Prefix, requested) || requested == "" && len(schemas) == 1 { // SQLite ignores case in names
			if err := ValidPrefix(s.Prefix); err != nil {
				return 0, "", foreignSchemaTable(d.path, err)
			}
			return s.Version, s.Prefix, nil
		}
	}

	switch {
	case !d.options.Beside && len(schemas) > 1:
		return 0, "", &jobs.Error{Kind: jobs.ErrSchema, Hint: "Options.Prefix",
			What: d.path + " has tables of runner with several prefixes"}
	case !d.options.Beside:
		return 0, "", notRunner(d.path, " is not a runner database", "it is an SQLite database of another program; nothing was changed")
	}

	prefix = cmp.Or(requested, DefaultPrefix)
	return 0, prefix, ValidPrefix(prefix)
}

func foreignSchemaTable(file string, err error) error {
	return &jobs.Error{Kind: jobs.ErrSchema, Err: err, Why: []string{err.Error()},
		What: "the table runner_schema of " + file + " is not runner's"}
}

// migrate upgrades the schema to SchemaVersion in one transaction. So after a
// crash at any point the file has the old schema or the new one. It changes
// nothing if another process has upgraded the schema meanwhile.
func (d *File) migrate(ctx context.Context) error {
	q := engine.Direct{Ctx: ctx, On: d.conn, Dialect: d.sql}
	if _, err := d.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return d.Explain(err)
	}
	defer func() { _, _ = d.conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") }() // fails after a commit, which is fine

	have, _, err := d.version(ctx)
	switch {
	case err != nil:
		return err
	case have == 0 && d.sql.Prefix != "":
		err = d.checkNames(ctx)
	case have > 0 && d.othersOpen():
		err = engine.OlderWorker(q, d.path)
	}

	if err == nil {
		err = d.runMigrations(q, have)
	}
	if err == nil {
		_, err = d.conn.ExecContext(ctx, "COMMIT")
	}

	return d.Explain(err)
}

// runMigrations runs the files of the schema after the version have, and
// records the new version. Meanwhile the database accepts writes, even if it's
// frozen.
func (d *File) runMigrations(q engine.Direct, have int) error {
	frozen, err := engine.ReadFrozen(q, d.sql)
	if err != nil {
		return err
	}
	if frozen != (engine.Frozen{}) {
		if err := engine.Thaw(q, d); err != nil {
			return err
		}
	}

	for _, m := range schema.MigrationsFrom(schema.SQLite, have) {
		if _, err := q.Exec(sqltext.Definition(m.Text()).With(nil)); err != nil {
			return fmt.Errorf("migration %s: %w", m.Name, d.Explain(err))
		}
	}

	if frozen != (engine.Frozen{}) {
		if err := engine.Freeze(q, d, frozen); err != nil {
			return err
		}
	}

	version := schema.Version(schema.SQLite)
	if d.sql.Prefix == "" {
		_, err = q.Exec(setOwnVersion.With(sqltext.Parts{"id": strconv.Itoa(ApplicationID), "version": strconv.Itoa(version)}))
	} else if _, err = d.conn.ExecContext(q.Ctx, CreateSchemaTable); err == nil {
		_, err = d.conn.ExecContext(q.Ctx, setSchemaVersion, d.sql.Prefix, version)
	}

	return err
}

// checkNames returns an error if a table or index of the other program has a
// name that runner needs.
func (d *File) checkNames(ctx context.Context) error {
	names := schema.Names()
	for i := range names {
		names[i] = d.sql.Prefix + names[i]
	}

	var used []string
	if err := d.conn.SelectContext(ctx, &used, selectUsedNames, `["`+strings.Join(names, `","`)+`"]`); err != nil || len(used) == 0 {
		return d.Explain(err)
	}

	return &jobs.Error{Kind: jobs.ErrConflict, What: d.path + " has a table or index " + strings.Join(used, ", ") + " already",
		Why: []string{"it is not runner's; nothing was changed"}, Hint: "another Options.Prefix"}
}
