package runner

import (
	"context"
	"database/sql"

	"example.com/runner/db"
)

// OpenDB opens a handle for the tables of an application, with settings for use
// together with a Runner. The path is that of a Runner's file, or that of the
// application's own database, which the application then passes to New. OpenDB
// creates the file with mode 0600 if it is missing, and switches it to WAL
// mode. The directory of the file must exist. The caller closes the handle.
//
// A transaction of the handle takes the write lock of the file when it begins.
// So no other transaction can write after the first read of this transaction.
// Such a write would make SQLite reject all later writes of this transaction.
// If the lock is not free, BeginTx waits for up to 10 s, or until its context
// ends. A transaction with sql.TxOptions.ReadOnly takes no lock: it reads one
// state of the database, and other transactions can write meanwhile.
//
// A commit is on the disk when it returns (synchronous FULL). Foreign keys are
// enforced. Do not set other pragmas on this handle or on a Runner: a pragma of
// one connection of the pool does not apply to the other connections.
//
// The pool opens as many connections as the program uses at once, and keeps 8
// of them. Do not limit the pool with SetMaxOpenConns to fewer connections than
// the program needs. Otherwise a goroutine that holds the write lock may need a
// second connection, while all other connections are in use by goroutines that
// wait for this lock. A transaction or an open sql.Rows keeps SQLite from
// reusing the write-ahead log. If the program ends its transactions and closes
// its rows soon, the log stays below 64 MiB.
//
// Errors are *jobs.Error of kind jobs.ErrInvalid, ErrNoDatabase if the
// directory does not exist, ErrPermission, ErrBusy, ErrReplaced, ErrSchema or
// ErrCorrupt, or the cause of ctx. A failed BeginTx of the handle returns an
// error of the driver modernc.org/sqlite.
func OpenDB(ctx context.Context, path string) (*sql.DB, error) {
	return db.OpenApplication(ctx, path, "")
}
