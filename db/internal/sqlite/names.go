package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	driver "modernc.org/sqlite"

	"example.com/runner/db/schema"
	"example.com/runner/jobs"
)

// In a database of another program our tables, indexes, views and triggers have a prefix, so that they are beside its own, whatever it
// calls them. The templates of statements and of the schema mark our names, and package sqltext puts the prefix in.
//
// Which prefix it is stands in the file, in the table runner_schema, with the version of the schema: application_id and user_version
// belong to the other program. So everybody who opens the file finds our tables in it, the command line, too.
//
// What was tried: a second file that is attached. A transaction over two files is not atomic in WAL mode, and that is what one wants
// from tables in the same database.

// DefaultPrefix is what the names of our tables begin with in a database of another program that says nothing else.
const DefaultPrefix = "runner_"

// ValidPrefix returns an error unless names may begin with prefix.
func ValidPrefix(prefix string) error {
	if schema.ValidPrefix(prefix) {
		return nil
	}
	return &jobs.FieldError{Field: "prefix", Msg: fmt.Sprintf("%q: a letter or _, then at most %d letters, digits or _; not sqlite_",
		prefix, schema.MaxPrefix-1)}
}

// PathOf returns the path of the file that a handle has open. It must be of the driver that this package uses: two copies of SQLite in
// one process break each other's locks.
func PathOf(ctx context.Context, handle *sql.DB) (string, error) {
	if _, ok := handle.Driver().(*driver.Driver); !ok {
		return "", &jobs.Error{Kind: jobs.ErrInvalid, What: fmt.Sprintf("the handle is of another driver: %T", handle.Driver()),
			Why:  []string{"two copies of SQLite in one process break each other's locks"},
			Hint: `sql.Open("sqlite", …) of modernc.org/sqlite`}
	}
	var file string
	if err := handle.QueryRowContext(ctx, selectMain.Template).Scan(&file); err != nil {
		return "", explain(err, "the handle's file")
	}
	if file == "" {
		return "", &jobs.Error{Kind: jobs.ErrInvalid, What: "the handle's database is in memory", Hint: "a database in a file"}
	}
	return file, nil
}
