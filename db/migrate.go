package db

import (
	"context"
	"embed"
	"fmt"
	"io/fs"
	"path"

	"github.com/jmoiron/sqlx"

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

// version returns the version of the file's schema: 0 for a file without any table. A file that is not ours, or that a newer
// program wrote, is refused, and nothing is written to it.
func version(ctx context.Context, conn *sqlx.Conn, file string) (int, error) {
	var id, have, tables int
	if err := conn.QueryRowxContext(ctx, readVersion).Scan(&id, &have, &tables); err != nil {
		return 0, explain(err, file)
	}
	switch want := SchemaVersion(); {
	case id == 0 && have == 0 && tables == 0:
		return 0, nil
	case id != applicationID:
		return 0, &jobs.Problem{Kind: jobs.ErrSchema, What: file + " is not a runner database",
			Why: []string{"it is an SQLite database of another program; nothing was changed"}, Try: "--db another file"}
	case have > want:
		return 0, &jobs.Problem{Kind: jobs.ErrSchema, What: file + " was written by a newer runner",
			Why: []string{fmt.Sprintf("its schema is %d, this one knows %d; opening could damage it", have, want)},
			Try: "upgrade this binary, or --db another file"}
	default:
		return have, nil
	}
}

// migrate brings the schema to SchemaVersion in one transaction: after a crash at any point the file has the old schema or
// the new one. It is a no-op when another process was quicker.
func migrate(ctx context.Context, conn *sqlx.Conn, file string) error {
	if _, err := conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
		return explain(err, file)
	}
	defer func() { _, _ = conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK") }() // an error once committed
	have, err := version(ctx, conn, file)
	if err != nil {
		return err
	}
	for number, name := range migrationNames() {
		if number < have {
			continue
		}
		text, err := migrations.ReadFile(name)
		if err != nil {
			return err
		}
		if _, err := conn.ExecContext(ctx, string(text)); err != nil {
			return fmt.Errorf("migration %s: %w", path.Base(name), explain(err, file))
		}
	}
	mark := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, SchemaVersion())
	if _, err := conn.ExecContext(ctx, mark); err != nil {
		return explain(err, file)
	}
	_, err = conn.ExecContext(ctx, "COMMIT")
	return explain(err, file)
}
