package db

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net"
	"strings"

	"example.com/runner/jobs"
)

// What a server says is told by its five letters (SQLSTATE), which every driver's error has; that there is no server, by the kinds of
// errors that networks have.
const (
	lockNotAvailable = "55P03"
	undefinedTable   = "42P01"
)

func sqlState(err error) string {
	var said interface{ SQLState() string }
	if errors.As(err, &said) {
		return said.SQLState()
	}
	return ""
}

// isLost says whether an error means that the connection to the server is gone, or was never there. Where a prepared statement finds its
// connection bad, database/sql tries it once more on the same, and says of it only that it is closed.
func isLost(err error) bool {
	if err == nil {
		return false
	}
	if state := sqlState(err); state != "" {
		return strings.HasPrefix(state, "08") || strings.HasPrefix(state, "57P") || state == "25P03" || state == "53300"
	}
	var network net.Error
	var retry interface{ SafeToRetry() bool } // what pgx has to say of a connection, and nothing else has
	return errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.Is(err, net.ErrClosed) || errors.Is(err, errNoServer) || !errors.Is(err, context.Canceled) && (errors.As(err, &network) || errors.As(err, &retry))
}

// explainServer is explain for what a server says; nil: it is none of that.
func explainServer(err error, name string) error {
	problem := func(kind error, what, try string, why ...string) error {
		return &jobs.Error{Kind: kind, What: what + " " + name, Why: why, Hint: try, Err: err}
	}
	state := sqlState(err)
	switch {
	case err == nil || state == "" && !isLost(err):
		return nil
	case state == lockNotAvailable:
		return problem(jobs.ErrBusy, "database is busy:", "again")
	case state == "28P01" || state == "28000":
		return problem(jobs.ErrPermission, "the server lets nobody in by that name and password:", "PGPASSWORD, ~/.pgpass, or another user in the address",
			text1(err))
	case state == "3D000":
		return problem(jobs.ErrNoDatabase, "the server has no such database:", "createdb", text1(err))
	case state == "42501":
		return problem(jobs.ErrPermission, "the user may not do that in", "GRANT CREATE ON DATABASE … TO …, or a schema that is theirs", text1(err))
	case state == "25006":
		return problem(jobs.ErrPermission, "the server is read only:", "the address of the primary server, or target_session_attrs=read-write", text1(err))
	case state == "53100" || state == "53200":
		return problem(jobs.ErrFull, "the server has no room left:", "free some space on its disk, then again", text1(err))
	case state == "08P01" || state == "0A000" || strings.Contains(text1(err), "startup parameter"):
		return problem(jobs.ErrInvalid, "a pooler stands between this program and", "the address of the server itself, or a pool in session mode",
			text1(err), "locks, prepared statements and LISTEN need a connection of one's own")
	case strings.HasPrefix(state, "XX"):
		return problem(jobs.ErrCorrupt, "the server has met damage in", "its log", text1(err))
	case isLost(err):
		return problem(jobs.ErrBusy, "no connection to", "again: it is tried anew each time", text1(err))
	}
	return nil
}

// text1 is the first line of what an error says, or the second where the first only leads to it. Drivers name the server and the user in
// it, never a password.
func text1(err error) string {
	text, more, _ := strings.Cut(err.Error(), "\n")
	if strings.HasSuffix(text, ":") {
		text, _, _ = strings.Cut(more, "\n")
	}
	return strings.TrimSpace(text)
}

// unanswered is the error of a commit whose answer was lost with the connection.
func (d *DB) unanswered(err error) error {
	return &jobs.Error{Kind: jobs.ErrUnknown, What: "the connection was lost during a commit: " + d.path, Err: err,
		Why: []string{"it may have happened, or not"}}
}
