package admin

import (
	"slices"
	"time"

	"example.com/runner/db"
)

// These types describe the sessions of a PostgreSQL server.
type (
	ServerHealth = db.ServerHealth
	Session      = db.Session
)

// These limits say when a condition on a server becomes a problem.
const (
	openTooLong   = time.Minute      // maximum age of a transaction that holds a snapshot or is idle
	lockedTooLong = 10 * time.Second // age of a transaction that holds the write lock
	farBehind     = 100_000          // number of transactions since a snapshot was taken; used if the age of the snapshot is unknown
)

// ServerProblems returns the sessions on a server that need attention. For each code it returns only the worst one, as Session:
//
//	lock_held             a session has held the write lock for more than ten seconds
//	idle_in_transaction   a session has had an open transaction for more than a minute, and is idle
//	snapshot_held         a session has held a snapshot for more than a minute, or while many other transactions have run
//
// It returns nothing for a database in a file, for which h is nil.
func ServerProblems(h *ServerHealth, now time.Time) (found []Problem) {
	if h == nil {
		return nil
	}
	for _, s := range h.Sessions {
		code := sessionProblem(s, now)
		if code != "" && !slices.ContainsFunc(found, func(p Problem) bool { return p.Code == code }) {
			found = append(found, Problem{Code: code, Since: s.Begun, Session: &s})
		}
	}
	return found
}

// sessionProblem returns the code of the problem that a session causes, or "" if it causes none.
func sessionProblem(s Session, now time.Time) string {
	age := now.Sub(s.Begun)
	switch {
	case s.Begun.IsZero(): // the server does not tell the age of the transaction
		if s.Behind > farBehind {
			return "snapshot_held"
		}
	case s.HasLock && age > lockedTooLong:
		return "lock_held"
	case age <= openTooLong:
	case s.Idle():
		return "idle_in_transaction"
	case s.Snapshot:
		return "snapshot_held"
	}
	return ""
}

// Identifier returns the name of a role in the form that SQL requires, with quotes if necessary.
func Identifier(name string) string { return db.Identifier(name) }
