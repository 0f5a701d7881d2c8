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

// SQLSTATE codes identify the errors of a server, with every driver.
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
	writesFrozen          = "55000" // object_not_in_prerequisite_state: from the triggers of a frozen database
)

func sqlState(err error) string {
	var coded interface{ SQLState() string }
	if errors.As(err, &coded) {
		return coded.SQLState()
	}
	return ""
}

// isLost reports whether the connection to the server is lost or couldn't be
// made. sql.ErrConnDone counts, too: database/sql uses the bad connection of a
// prepared statement a second time, and then returns that in place of the
// cause.
func isLost(err error) bool {
	if err == nil {
		return false
	}
	if state := sqlState(err); state != "" {
		return strings.HasPrefix(state, "08") || strings.HasPrefix(state, "57P") || state == idleInTransaction ||
			state == transactionTimeout || state == "53300"
	}

	lost := []error{driver.ErrBadConn, sql.ErrConnDone, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, errNoServer}
	if slices.ContainsFunc(lost, func(cause error) bool { return errors.Is(err, cause) }) {
		return true
	}

	var network net.Error
	var retry interface{ SafeToRetry() bool } // only the connection errors of pgx have this method
	return !errors.Is(err, context.Canceled) && (errors.As(err, &network) || errors.As(err, &retry))
}

// Explain turns an error of the driver into one that explains the problem and
// gives a hint, by its code and never by its text. It returns other errors and
// nil unchanged.
func (s *Server) Explain(err error) error {
	if _, ok := errors.AsType[*jobs.Error](err); ok {
		return err
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
	case state == undefinedParameter: // of the address, or idle_session_timeout before PostgreSQL 14
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
		return &jobs.Error{Kind: jobs.ErrFull, Code: errcode.DiskFull, What: "the disk of the server is full: " + s.Name(),
			Why: []string{firstLine(err)}, Hint: "free some space on its disk, then again", Err: err}
	case state == "08P01" || state == "0A000": // 08P01 is PgBouncer's, for a startup parameter that it doesn't know
		return problem(jobs.ErrInvalid, "there is a pooler between this program and",
			"the address of the server itself, or a pool in session mode", firstLine(err),
			"locks, prepared statements and LISTEN need a connection to the server itself")
	case isLost(err):
		return problem(jobs.ErrBusy, "no connection to", "again: each call tries to connect", firstLine(err))
	}

	return err
}

// firstLine returns the line of an error's text that names the cause. With
// sslmode=prefer, the default, the driver tries to connect with TLS and
// without, and the text has a line for each try: an answer of the server counts
// more than a failed TLS handshake. The text names the server and the user, but
// never has a password.
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

// BeginFailed implements engine.Errors, with an explained error.
func (s *Server) BeginFailed(err error) error {
	begun, ok := errors.AsType[beginError](err)
	switch {
	case !ok:
		return nil
	case s.Busy(begun): // it has waited for the lock for BusyTimeout
		return &jobs.Error{Kind: jobs.ErrBusy, Code: errcode.LockTimeout, Subject: s.Name(), What: "database is busy: " + s.Name(),
			Err: begun,
			Why: []string{
				fmt.Sprintf("another transaction has held the write lock for %v", s.options.BusyTimeout),
				"nothing was written",
			}}
	}

	return s.Explain(begun)
}

// Refused reports whether a trigger of a frozen database rejected a write.
func (*Server) Refused(err error) bool { return sqlState(err) == writesFrozen }

// Asserted reports whether an assertion in SQL failed.
func (*Server) Asserted(err error) bool { return sqlState(err) == divisionByZero }

// BusyRetries returns 0: writers wait for the lock in a queue of the server.
func (*Server) BusyRetries() int64 { return 0 }

// Unanswered returns the error of a commit whose connection was lost.
func (s *Server) Unanswered(err error) error {
	if !isLost(err) {
		return err
	}
	return &jobs.Error{Kind: jobs.ErrUnknown, What: "the connection was lost during a commit: " + s.Name(), Err: err,
		Why: []string{"it may have happened, or not"}}
}
