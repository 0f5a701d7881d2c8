package present

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
)

// These limits say when a condition on a server becomes a problem.
const (
	openTooLong   = time.Minute      // maximum age of a transaction that holds a snapshot or is idle
	lockedTooLong = 10 * time.Second // age of a transaction that holds the write lock
	farBehind     = 100_000          // number of transactions since a snapshot was taken; used if the age of the snapshot is unknown
)

// ServerProblems returns the sessions on a server that need attention. For each
// code it returns only the worst one:
//
//	lock_held             a session has held the write lock for more than ten seconds
//	idle_in_transaction   a session has had an open transaction for more than a minute, and is idle
//	snapshot_held         a session has held a snapshot for more than a minute, or while many other transactions have run
//
// For a database in a file h is nil, and the result is empty.
func ServerProblems(h *admin.ServerHealth, now time.Time) (found []Problem) {
	if h == nil {
		return nil
	}
	for _, s := range h.Sessions {
		code, message := sessionProblem(s, now)
		if code != "" && !slices.ContainsFunc(found, func(p Problem) bool { return p.Code == code }) {
			found = append(found, Problem{Code: code, Message: message,
				Try: fmt.Sprintf(`psql -c "SELECT pg_terminate_backend(%d)"`, s.PID)})
		}
	}
	return found
}

// sessionProblem returns the problem that a session causes. The code is empty if
// it causes none.
func sessionProblem(s admin.Session, now time.Time) (code, message string) {
	name := fmt.Sprintf("session %d (%s, user %s", s.PID, cmp.Or(s.Application, "no application name"), s.User)
	if s.Client != "" {
		name += ", host " + s.Client
	}
	name += ")"
	const dead = "; VACUUM removes no row that died since then"
	if s.Begun.IsZero() { // the server does not tell the age of the transaction
		if s.Behind <= farBehind {
			return "", ""
		}
		return "snapshot_held", fmt.Sprintf("%s holds a snapshot that is %d transactions old%s", name, s.Behind, dead)
	}
	open := now.Sub(s.Begun)
	age := humanize.Age(open)
	if last := humanize.Age(now.Sub(s.QueryBegun)); !s.QueryBegun.IsZero() && last != age {
		age += " (last query " + last + " ago)"
	}
	switch {
	case s.HasLock && open > lockedTooLong:
		return "lock_held", name + " has held the write lock for " + age + ", and other writers wait"
	case open <= openTooLong:
		return "", ""
	case s.Idle():
		code, message = "idle_in_transaction", name+" is idle in a transaction that has been open for "+age
	case s.Snapshot:
		code, message = "snapshot_held", name+" has held a snapshot for "+age
	}
	if code != "" && s.Snapshot {
		message += dead
	}
	return code, message
}
