package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/sqltext"
)

// selectHealth reads the health of the server as one JSON object, in one round trip. It reads only views of the server's memory and the
// list of tables, and no rows of tables. [1] is the schema. [2] is a time: the query lists the sessions whose transaction began before that
// time, and the sessions whose times the server hides from this role. [3] and [4] are the upper and the lower half of the number of the
// advisory lock.
//
// The query lists only sessions whose snapshot can keep dead rows of this database. These are the sessions of this database, and the
// sessions of standby servers, which have no database. The query leaves out VACUUM, whose snapshot keeps no dead rows. It also leaves out
// autovacuum, whose sessions have no user.
var selectHealth = sqltext.Query(`SELECT json_build_object(
'user', current_user,
'unseen', NOT pg_has_role('pg_read_all_stats', 'USAGE'),
'no_autovacuum', NOT CAST(current_setting('autovacuum') AS boolean),
'sync_names', current_setting('synchronous_standby_names'),
'sessions', (SELECT json_agg(s) FROM (
	SELECT pid, usename AS user, application_name AS application, coalesce(host(client_addr), '') AS client, coalesce(state, '') AS state,
		xact_start AS begun, query_start AS query_begun,
		coalesce(greatest(age(backend_xmin), age(backend_xid)), 0) AS behind, coalesce(backend_xmin, backend_xid) IS NOT NULL AS snapshot,
		EXISTS (SELECT FROM pg_locks
			WHERE pg_locks.pid = a.pid AND locktype = 'advisory' AND granted AND objsubid = 1
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
			AND CAST(classid AS bigint) = ?3 AND CAST(objid AS bigint) = ?4) AS has_lock
	FROM pg_stat_activity a
	WHERE (datname = current_database() OR datname IS NULL) AND usename IS NOT NULL AND pid <> pg_backend_pid()
		AND (xact_start < ?2 OR xact_start IS NULL AND coalesce(backend_xmin, backend_xid) IS NOT NULL)
		AND pid NOT IN (SELECT pid FROM pg_stat_progress_vacuum)
	ORDER BY 8 DESC, xact_start LIMIT 10) s),
'prepared', (SELECT json_agg(p) FROM (
	SELECT gid AS name, owner, prepared AS at, age(transaction) AS behind FROM pg_prepared_xacts WHERE database = current_database()
	ORDER BY 4 DESC LIMIT 10) p),
'slots', (SELECT json_agg(s) FROM (
	SELECT slot_name AS name, active, coalesce(age(xmin), 0) AS behind, coalesce(CAST(pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery()
		THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, restart_lsn) AS bigint), 0) AS bytes
	FROM pg_replication_slots WHERE xmin IS NOT NULL OR NOT active ORDER BY 3 DESC, 4 DESC LIMIT 10) s),
'standbys', (SELECT json_agg(s) FROM (
	SELECT application_name AS name, coalesce(state, '') AS state, coalesce(sync_state, '') AS sync,
		coalesce(CAST(pg_wal_lsn_diff(CASE WHEN pg_is_in_recovery()
			THEN pg_last_wal_replay_lsn() ELSE pg_current_wal_lsn() END, replay_lsn) AS bigint), 0) AS bytes,
		coalesce(CAST(extract(epoch FROM replay_lag) * 1000000000 AS bigint), 0) AS lag
	FROM pg_stat_replication WHERE state IS DISTINCT FROM 'backup' ORDER BY 4 DESC LIMIT 10) s),
'replica', CASE WHEN pg_is_in_recovery() THEN json_build_object('receives', EXISTS (SELECT FROM pg_stat_wal_receiver),
	'bytes', coalesce(CAST(pg_wal_lsn_diff(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) AS bigint), 0),
	'applied', pg_last_xact_replay_timestamp()) END,
'tables', (SELECT json_agg(t) FROM (
	SELECT ?1 || '.' || relname AS name, pg_stat_get_live_tuples(oid) AS live, pg_stat_get_dead_tuples(oid) AS dead,
		greatest(pg_stat_get_last_vacuum_time(oid), pg_stat_get_last_autovacuum_time(oid)) AS vacuumed
	FROM pg_class WHERE relkind = 'r' AND relnamespace = to_regnamespace(?1) ORDER BY 3 DESC, 1 LIMIT 10) t),
'rights', (SELECT json_build_object('user', current_user, 'schema', ?1,
	'owner', coalesce(bool_and(pg_has_role(relowner, 'USAGE')), false), 'missing',
	(SELECT json_agg(kind || ' ON ' || relname ORDER BY relname, kind) FROM pg_class,
		unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) kind
		WHERE relkind = 'r' AND relnamespace = to_regnamespace(?1) AND (relname <> 'runner_schema' OR kind = 'SELECT')
		AND NOT has_table_privilege(oid, kind)))
	FROM pg_class WHERE relkind = 'r' AND relnamespace = to_regnamespace(?1)))`)

// openFor is how long a transaction must have been open before Health lists it.
const openFor = 10 * time.Second

// Health returns the health of the server.
func (s *Server) Health(ctx context.Context, now time.Time) (*engine.ServerHealth, error) {
	var text []byte
	number := uint64(s.lock)
	err := s.read.GetContext(ctx, &text, s.sql.Text(selectHealth), s.Schema, now.Add(-openFor), int64(number>>32), int64(number&0xffffffff))
	if err != nil {
		return nil, s.Explain(err)
	}
	health := &engine.ServerHealth{}
	if err := json.Unmarshal(text, health); err != nil {
		return nil, fmt.Errorf("health of the server: %w", err)
	}
	return health, nil
}
