package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/sqltext"
)

// selectHealth reads the sessions of the server as one JSON object, in one round trip, from views of the server's memory. It lists those
// whose transaction began before the time [1], and those whose times the server hides from this role. [2] and [3] are the upper and the
// lower half of the number of the advisory lock.
//
// It lists only sessions whose snapshot can keep dead rows of this database: those of this database, and those of standby servers, which
// have no database. It leaves out VACUUM, whose snapshot keeps no dead rows, and autovacuum, whose sessions have no user.
var selectHealth = sqltext.Query(`SELECT json_build_object(
'user', current_user,
'unseen', NOT pg_has_role('pg_read_all_stats', 'USAGE'),
'sessions', (SELECT json_agg(s) FROM (
	SELECT pid, usename AS user, application_name AS application, coalesce(host(client_addr), '') AS client, coalesce(state, '') AS state,
		xact_start AS begun, query_start AS query_begun,
		coalesce(greatest(age(backend_xmin), age(backend_xid)), 0) AS behind, coalesce(backend_xmin, backend_xid) IS NOT NULL AS snapshot,
		EXISTS (SELECT FROM pg_locks
			WHERE pg_locks.pid = a.pid AND locktype = 'advisory' AND granted AND objsubid = 1
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND CAST(classid AS bigint) = ?2 AND CAST(objid AS bigint) = ?3) AS has_lock
	FROM pg_stat_activity a
	WHERE (datname = current_database() OR datname IS NULL) AND usename IS NOT NULL AND pid <> pg_backend_pid()
		AND (xact_start < ?1 OR xact_start IS NULL AND coalesce(backend_xmin, backend_xid) IS NOT NULL)
		AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
	ORDER BY 8 DESC, xact_start LIMIT 10) s))`)

// openFor is how long a transaction must have been open before Health lists it.
const openFor = 10 * time.Second

// Health returns the health of the server.
func (s *Server) Health(ctx context.Context, now time.Time) (*engine.ServerHealth, error) {
	var text []byte
	number := uint64(s.lock)
	err := s.read.GetContext(ctx, &text, s.sql.Text(selectHealth), now.Add(-openFor), int64(number>>32), int64(number&0xffffffff))
	if err != nil {
		return nil, s.Explain(err)
	}
	health := &engine.ServerHealth{}
	if err := json.Unmarshal(text, health); err != nil {
		return nil, fmt.Errorf("health of the server: %w", err)
	}
	return health, nil
}
