package admin

import (
	"context"
	"slices"
	"time"

	"example.com/runner/db"
	"example.com/runner/runner"
)

// These types describe the health of a PostgreSQL server.
type (
	ServerHealth = db.ServerHealth
	Session      = db.Session
	Prepared     = db.Prepared
	Slot         = db.Slot
	Standby      = db.Standby
	Replica      = db.Replica
	TableHealth  = db.TableHealth
	Rights       = db.Rights
)

// These limits say when a condition on a server becomes a problem.
const (
	openTooLong   = time.Minute      // maximum age of a transaction that is prepared, holds a snapshot or is idle
	lockedTooLong = 10 * time.Second // age of a transaction that holds the write lock
	farBehind     = 100_000          // number of transactions since a snapshot was taken; used if the age of the snapshot is unknown
	longLog       = 1 << 30          // maximum bytes of log that a standby has not applied, or that a replication slot keeps
	lateReplica   = time.Minute      // delay with which a standby applies the log
	manyDead      = 100_000          // number of dead rows that is a problem, if the table also has more dead than live rows
	vacuumOverdue = 10 * time.Minute // time since the last VACUUM of a table that has more than manyDead dead rows
)

// Health describes the health of the database server. It returns nil for a database in a file.
func Health(ctx context.Context, r *runner.Runner, now time.Time) (*ServerHealth, error) {
	return store(r).Health(ctx, now)
}

// ServerProblems returns the conditions on a server that need attention. Object is the object that has the problem. A capitalized word in
// the list is its type:
//
//	lock_held             a Session has held the write lock for more than ten seconds
//	idle_in_transaction   a Session has had an open transaction for more than a minute, and is idle
//	snapshot_held         a Session has held a snapshot for more than a minute, or while many other transactions have run
//	prepared_transaction  a Prepared transaction is older than a minute
//	slot_behind           a replication Slot makes the server keep old rows or a long log, and so fills its disk
//	dead_rows             a table has many dead rows, and nothing has vacuumed it for ten minutes; Object is its TableHealth
//	no_sync_standby       commits wait for a synchronous standby, but none is connected; Object is the setting synchronous_standby_names
//	standby_behind        a Standby is late in applying the write-ahead log
//	replica_behind        this server is itself a Replica, and it is late in applying the log, or receives none
//	autovacuum_off        the setting autovacuum is off; Object is nil
//	missing_rights        the role of this process lacks Rights that a worker needs, and it is not a role that only reads
//
// If several objects have the same problem, it returns only the worst one. It returns nothing for a database in a file, for which h is nil.
func ServerProblems(h *ServerHealth, now time.Time) (found []Problem) {
	if h == nil {
		return nil
	}
	add := func(code string, since time.Time, object any) {
		if !slices.ContainsFunc(found, func(p Problem) bool { return p.Code == code }) {
			found = append(found, Problem{Code: code, Since: since, Object: object})
		}
	}
	for _, s := range h.Sessions {
		if code := sessionProblem(s, now); code != "" {
			add(code, s.Begun, s)
		}
	}
	for _, p := range h.Prepared {
		if now.Sub(p.At) > openTooLong {
			add("prepared_transaction", p.At, p)
		}
	}
	for _, s := range h.Slots {
		if s.Behind > farBehind || !s.Active && s.Bytes > longLog {
			add("slot_behind", time.Time{}, s)
		}
	}
	for _, t := range h.Tables {
		if t.Dead > manyDead && t.Dead > t.Live && now.Sub(t.Vacuumed) > vacuumOverdue {
			add("dead_rows", t.Vacuumed, t)
		}
	}
	if missesSync(h) {
		add("no_sync_standby", time.Time{}, h.SyncNames)
	}
	for _, s := range h.Standbys {
		if s.Lag > lateReplica || s.Bytes > longLog {
			add("standby_behind", time.Time{}, s)
		}
	}
	if r := h.Replica; r != nil && (!r.Receives || r.Bytes > longLog || appliesLate(*r, now)) {
		add("replica_behind", r.Applied, *r)
	}
	if h.NoAutovacuum && h.Replica == nil { // a standby cannot vacuum
		add("autovacuum_off", time.Time{}, nil)
	}
	if len(h.Rights.Missing) > 0 && !h.Rights.ReadOnly() {
		add("missing_rights", time.Time{}, h.Rights)
	}
	return found
}

// appliesLate reports whether a replica is late in applying the log: it has received parts of the log that it has not applied, and the last
// commit that it applied is more than a minute old. If it has applied no commit since its start, appliesLate returns false.
func appliesLate(r Replica, now time.Time) bool {
	return r.Bytes > 0 && !r.Applied.IsZero() && now.Sub(r.Applied) > lateReplica
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

// missesSync reports whether commits must wait because no synchronous standby is connected.
func missesSync(h *ServerHealth) bool {
	return h.SyncNames != "" && h.Replica == nil && !slices.ContainsFunc(h.Standbys, func(s Standby) bool {
		return s.Sync == "sync" || s.Sync == "quorum" || h.Unseen
	})
}

// Identifier returns the name of a role in the form that SQL requires, with quotes if necessary.
func Identifier(name string) string { return db.Identifier(name) }
