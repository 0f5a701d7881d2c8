package sqlite

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"sync"

	driver "modernc.org/sqlite"

	"example.com/runner/db/internal/sqltext"
	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// A program can link several drivers for SQLite. Each has its own copy of
// SQLite, and two copies in one process break each other's locks: neither knows
// the locks of the other, nor the memory that the other shares with other
// processes. A worker then fails with an I/O error, or the file is damaged. So
// we refuse handles and transactions of other drivers where we can.
// database/sql hides the driver of a transaction, so we compare how the copies
// of SQLite were built.

// build is an SQL expression that identifies the build of a copy of SQLite: its
// version and the first of its compile options, which name the compiler and
// default values. No two drivers have the same build. Reading all options would
// take ten times as long.
const build = `sqlite_source_id() || (SELECT group_concat(coalesce(sqlite_compileoption_get(value), ''))
	FROM json_each('[0,1,2,3,4,5,6,7]'))`

// selectOuter returns the path of a connection's main database, and the build
// of its SQLite.
var selectOuter = sqltext.Query(`SELECT file, ` + build + ` FROM pragma_database_list WHERE name = 'main'`)

// ownBuild returns the build of this program's SQLite.
var ownBuild = sync.OnceValues(func() (own string, err error) {
	pool, err := sql.Open(driverName, ":memory:")
	if err != nil {
		return "", err
	}
	defer pool.Close()
	err = pool.QueryRow("SELECT " + build).Scan(&own)
	return own, err
})

// isForeign reports whether an error comes from another driver than ours.
func isForeign(err error) bool {
	_, own := errors.AsType[*driver.Error](err)
	return !own && !errors.Is(err, sql.ErrTxDone) && !errors.Is(err, sql.ErrConnDone) && !errors.Is(err, sqldriver.ErrBadConn) &&
		!errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded)
}

func otherDriver(what string, err error) error {
	return &jobs.Error{Kind: jobs.ErrInvalid, Code: errcode.OtherDriver, What: what + " is of another driver", Err: err,
		Why:  []string{"two copies of SQLite in one process break each other's locks"},
		Hint: "a handle of runner.OpenDB, or of modernc.org/sqlite"}
}
