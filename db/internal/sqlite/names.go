package sqlite

import (
	"context"
	"database/sql"
	"fmt"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"example.com/runner/db/schema"
	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// In a database of another program, runner's tables, indexes, views and
// triggers have a prefix, so that their names differ from that program's. The
// templates of statements and of the schema have runner's names in braces, and
// package sqltext inserts the prefix.
//
// The table runner_schema holds the prefix and the version of the schema, since
// application_id and user_version belong to the other program. So every process
// that opens the file finds runner's tables, the command line too.
//
// Runner's tables can't be in a second file that is attached to the connection:
// a transaction must be able to change them together with the other program's,
// and in WAL mode a transaction over two files isn't atomic.

// DefaultPrefix is the default prefix of runner's tables in a database of
// another program.
const DefaultPrefix = "runner_"

// ValidPrefix returns an error unless prefix is valid; see schema.ValidPrefix.
func ValidPrefix(prefix string) error {
	if schema.ValidPrefix(prefix) {
		return nil
	}
	return &jobs.FieldError{Field: "prefix", Msg: fmt.Sprintf("%q: a letter or _, then at most %d letters, digits or _; not sqlite_",
		prefix, schema.MaxPrefix-1)}
}

// PathOf returns the path of the file that a handle has open. The handle must
// use our driver: two copies of SQLite in one process break each other's locks.
func PathOf(ctx context.Context, handle *sql.DB) (string, error) {
	if handle == nil {
		return "", &jobs.Error{Kind: jobs.ErrInvalid, What: "the handle is nil", Hint: `sql.Open("sqlite", …) of modernc.org/sqlite`}
	}
	if _, ok := handle.Driver().(*driver.Driver); !ok {
		return "", otherDriver(fmt.Sprintf("the handle, a %T,", handle.Driver()), nil)
	}

	var file string
	if err := handle.QueryRowContext(ctx, selectMain.Template).Scan(&file); err != nil {
		if code(err) == sqlite3.SQLITE_CANTOPEN {
			return "", &jobs.Error{Kind: jobs.ErrNoDatabase, Code: errcode.NoDatabase, What: "the handle's file cannot be opened", Err: err,
				Why: []string{"it does not exist, or its directory does not"}, Hint: "a handle that creates the file"}
		}
		return "", explain(err, "the handle's file")
	}
	if file == "" {
		return "", &jobs.Error{Kind: jobs.ErrInvalid, What: "the handle's database is in memory", Hint: "a database in a file"}
	}

	return file, nil
}
