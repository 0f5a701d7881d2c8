package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	"example.com/runner/db/internal/engine"
	"example.com/runner/db/schema"
	"example.com/runner/internal/errcode"
	"example.com/runner/jobs"
)

// These SQLSTATE codes identify errors of a server. The errors of every driver have such a code of five characters. isLost looks at
// these codes, and also at the types of network errors.
const (
	lockNotAvailable      = "55P03"
	undefinedTable        = "42P01"
	undefinedColumn       = "42703"
	divisionByZero        = "22012"
	insufficientPrivilege = "42501"
	queryCanceled         = "57014" // query_canceled: caused by statement_timeout or pg_cancel_backend
	deadlockDetected      = "40P01"
	serializationFailure  = "40001"
	undefinedParameter    = "42704"
	transactionTimeout    = "25P04" // transaction_timeout: the server ends the session
	idleInTransaction     = "25P03"
	writesFrozen          = "55000" // object_not_in_prerequisite_state: a migration has frozen the database, so a trigger rejects the write
)

func sqlState(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}

// isLost reports whether an error means that the connection to the server is lost or could not be made. sql.ErrConnDone also means a lost
// connection: database/sql uses the bad connection of a prepared statement a second time, and then returns sql.ErrConnDone instead of the
// cause.
func isLost(err error) bool {
	if err == nil {
		return false
	}
	if state := sqlState(err); state != "" {
		return strings.HasPrefix(state, "08") || strings.HasPrefix(state, "57P") || state == idleInTransaction ||
			state == transactionTimeout || state == "53300"
	}
	var network net.Error
	var retry interface{ SafeToRetry() bool } // only the connection errors of pgx have this method
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, errNoServer) || !errors.Is(err, context.Canceled) &&
		(errors.As(err, &network) || errors.As(err, &retry))
}

// Explain turns an error of the driver into an error that explains the problem to a user and gives a hint. It uses only the code of the
// error and not its text. It returns other errors and nil unchanged.
func (s *Server) Explain(err error) error {
	if _, ok := errors.AsType[*jobs.Error](err); ok {
		return err // the error is already explained
	}
	if engine.IsPoolClosed(err) {
		return jobs.ErrClosed
	}
	problem := func(kind error, what, hint string, why ...string) error {
		return &jobs.Error{Kind: kind, What: what + " " + s.Name(), Why: why, Hint: hint, Err: err}
	}
	state := sqlState(err)
	switch {
	case err == nil || state == "" && !isLost(err):
		return err
	case state == lockNotAvailable:
		return problem(jobs.ErrBusy, "database is busy:", "again")
	case state == queryCanceled:
		return problem(jobs.ErrBusy, "the server cancelled a statement of", "again, or a longer statement_timeout for this user",
			firstLine(err), "nothing was written")
	case state == deadlockDetected || state == serializationFailure: // a standby cancels long reads with the second
		return problem(jobs.ErrBusy, "another transaction was in the way in", "again", firstLine(err), "nothing was written")
	case state == "28P01" || state == "28000":
		return problem(jobs.ErrPermission, "the server rejects this user or password:",
			"PGPASSWORD, ~/.pgpass, or another user in the address", firstLine(err))
	case state == "3D000":
		return problem(jobs.ErrNoDatabase, "the server has no such database:", "createdb", firstLine(err))
	case state == undefinedParameter: // a parameter of the address, or idle_session_timeout on a server older than PostgreSQL 14
		return problem(jobs.ErrInvalid, "the server does not know a setting of this connection:",
			"correct the parameters of the address; PostgreSQL 14 or later is needed", firstLine(err))
	case strings.HasPrefix(state, "XX"):
		return problem(jobs.ErrCorrupt, "the server reports damaged data:", "the log of the server", firstLine(err))
	case state == undefinedTable || state == undefinedColumn:
		return problem(jobs.ErrSchema, fmt.Sprintf("the tables are not those of schema %d:", schema.Version(schema.Postgres)),
			"another schema, with ?search_path=NAME", firstLine(err))
	case state == insufficientPrivilege:
		return problem(jobs.ErrPermission, "the user lacks a permission in", "the rights that docs/postgres.md lists for each role",
			firstLine(err))
	case state == "25006":
		return problem(jobs.ErrPermission, "the server is read only:",
			"the address of the primary server, or target_session_attrs=read-write", firstLine(err))
	case state == "53100" || state == "53200":
		return problem(jobs.ErrFull, "the disk of the server is full:", "free some space on its disk, then again", firstLine(err))
	case state == "08P01" || state == "0A000": // PgBouncer returns 08P01 for a startup parameter that it does not support
		return problem(jobs.ErrInvalid, "there is a pooler between this program and",
			"the address of the server itself, or a pool in session mode",
			firstLine(err), "locks, prepared statements and LISTEN need a connection to the server itself")
	case isLost(err):
		return problem(jobs.ErrBusy, "no connection to", "again: each call tries to connect", firstLine(err))
	}
	return err
}

// firstLine returns the line of an error's text that names the cause. With
// sslmode=prefer, the default, the driver tries to connect with TLS and without,
// and the text has a line for each try: an answer of the server counts more than
// a failed TLS handshake. The text names the server and the user, but never has
// a password.
func firstLine(err error) string {
	var lines []string
	for line := range strings.Lines(err.Error()) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasSuffix(line, ":") {
			lines = append(lines, line)
		}
	}
	for _, line := range slices.Backward(lines) {
		if !strings.Contains(line, "tls error") {
			return line
		}
	}
	return strings.Join(lines, "; ")
}

// Busy reports whether another transaction held the lock for too long.
func (*Server) Busy(err error) bool { return sqlState(err) == lockNotAvailable }

// Broken reports whether the connection is lost.
func (*Server) Broken(err error) bool { return isLost(err) }

// BeginFailed returns an error if the statement failed because its transaction did not begin. This error explains the problem to a user, as
// the error of Explain does. BeginFailed returns nil for every other err.
func (s *Server) BeginFailed(err error) error {
	begun, ok := errors.AsType[beginError](err)
	switch {
	case !ok:
		return nil
	case s.Busy(begun): // the statement has waited for the lock as long as BusyTimeout allows
		return &jobs.Error{Kind: jobs.ErrBusy, Code: errcode.LockTimeout, Subject: s.Name(), What: "database is busy: " + s.Name(),
			Err: begun,
			Why: []string{fmt.Sprintf("another transaction has held the write lock for %v", s.options.BusyTimeout), "nothing was written"}}
	}
	return s.Explain(begun)
}

// Refused reports whether a trigger rejected a write because a migration has frozen the database.
func (*Server) Refused(err error) bool { return sqlState(err) == writesFrozen }

// Asserted reports whether err means that an assertion in SQL failed. A failed assertion divides by zero.
func (*Server) Asserted(err error) bool { return sqlState(err) == divisionByZero }

// BusyRetries returns 0, because writers wait for the lock in a queue of the server.
func (*Server) BusyRetries() int64 { return 0 }

// Unanswered returns the error for a commit whose result is unknown because the connection was lost.
func (s *Server) Unanswered(err error) error {
	if !isLost(err) {
		return err
	}
	return &jobs.Error{Kind: jobs.ErrUnknown, What: "the connection was lost during a commit: " + s.Name(), Err: err,
		Why: []string{"it may have happened, or not"}}
}
