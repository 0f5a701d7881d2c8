package present_test

import (
	"testing"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/present"
	"example.com/runner/internal/testkit"
)

// TestConditionsOnAServerAreProblems checks when a condition on a server becomes a problem, and the words that describe it.
func TestConditionsOnAServerAreProblems(t *testing.T) {
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	session := func(more func(*admin.Session)) *admin.ServerHealth {
		s := admin.Session{PID: 4711, User: "ann", Application: "pg_dump", State: "active", Begun: ago(3 * time.Minute), Snapshot: true,
			Behind: 7}
		more(&s)
		return &admin.ServerHealth{Sessions: []admin.Session{s}}
	}
	const end = `psql -c "SELECT pg_terminate_backend(4711)"`
	const stays = "; VACUUM removes no row that died since then"
	testServerProblems(t, map[string]serverTest{
		"a file":           {nil, "", "", ""},
		"a healthy server": {&admin.ServerHealth{}, "", "", ""},
		"a long snapshot": {session(func(*admin.Session) {}), "snapshot_held",
			"session 4711 (pg_dump, user ann) has held a snapshot for 3m" + stays, end},
		"a short snapshot":      {session(func(s *admin.Session) { s.Begun = ago(time.Minute) }), "", "", ""},
		"a long query, no rows": {session(func(s *admin.Session) { s.Snapshot = false }), "", "", ""},
		"a hidden session":      {session(func(s *admin.Session) { s.Begun = time.Time{} }), "", "", ""},
		"an idle one, no snapshot": {session(func(s *admin.Session) {
			s.State, s.Snapshot, s.Client = "idle in transaction", false,
				"10.0.0.3"
		}), "idle_in_transaction",
			"session 4711 (pg_dump, user ann, host 10.0.0.3) is idle in a transaction that has been open for 3m", end},
		"an idle one": {session(func(s *admin.Session) {
			s.State, s.Application, s.QueryBegun = "idle in transaction (aborted)", "", ago(2*time.Minute)
		}), "idle_in_transaction",
			"session 4711 (no application name, user ann) is idle in a transaction that has been open for 3m (last query 2m ago)" + stays,
			end},
		"an old hidden snapshot": {session(func(s *admin.Session) { s.Begun, s.Behind = time.Time{}, 100_001 }), "snapshot_held",
			"session 4711 (pg_dump, user ann) holds a snapshot that is 100001 transactions old" + stays, end},
		"the write lock": {session(func(s *admin.Session) { s.Begun, s.HasLock = ago(11*time.Second), true }), "lock_held",
			"session 4711 (pg_dump, user ann) has held the write lock for 11s, and other writers wait", end},
		"a prepared transaction": {&admin.ServerHealth{Prepared: []admin.Prepared{{Name: `it's "$x"`, Owner: "ann",
			At: ago(2 * time.Hour)}}}, "prepared_transaction",
			`the prepared transaction it's "$x" of user ann has been open for 2h` + stays, `psql -c "ROLLBACK PREPARED 'it''s \"\$x\"'"`},
		"an unused slot": {&admin.ServerHealth{Slots: []admin.Slot{{Name: "old", Bytes: 2e9}}}, "slot_behind",
			"no standby uses replication slot old; the server keeps 2.0 GB of its log for it",
			`psql -c "SELECT pg_drop_replication_slot('old')"`},
		"a slot in use": {&admin.ServerHealth{Slots: []admin.Slot{{Name: "b", Bytes: 2e9, Active: true}}}, "", "", ""},
		"a slot with a snapshot": {&admin.ServerHealth{Slots: []admin.Slot{{Name: "b", Active: true, Behind: 200_000}}}, "slot_behind",
			"the standby of replication slot b holds a snapshot that is 200000 transactions old" + stays,
			"on the standby: end long queries, or set hot_standby_feedback = off"},
		"dead rows": {&admin.ServerHealth{Tables: []admin.TableHealth{{Name: "runner.tasks", Live: 9, Dead: 200_000}}}, "dead_rows",
			"table runner.tasks has 200000 dead rows beside 9 rows; it was never vacuumed", `psql -c "VACUUM (VERBOSE) runner.tasks"`},
		"dead rows, vacuumed": {&admin.ServerHealth{Tables: []admin.TableHealth{{Live: 9, Dead: 200_000, Vacuumed: ago(time.Minute)}}},
			"", "", ""},
		"dead rows beside more": {&admin.ServerHealth{Tables: []admin.TableHealth{{Live: 900_000, Dead: 200_000}}}, "", "", ""},
	})
}

func TestStandbysThatAreLateAreProblems(t *testing.T) {
	ago := func(d time.Duration) time.Time { return noon.Add(-d) }
	receives := `psql -c "SELECT * FROM pg_stat_wal_receiver"`
	testServerProblems(t, map[string]serverTest{
		"a synchronous standby": {&admin.ServerHealth{SyncNames: "*", Standbys: []admin.Standby{{Name: "b", Sync: "sync"}}}, "", "", ""},
		"an invisible standby":  {&admin.ServerHealth{SyncNames: "*", Unseen: true, Standbys: []admin.Standby{{Name: "b"}}}, "", "", ""},
		"no synchronous standby": {&admin.ServerHealth{SyncNames: "b"}, "no_sync_standby",
			"commits wait for a synchronous standby, and none is connected: synchronous_standby_names is b",
			"start the standby; to work without one: " +
				`psql -c "ALTER SYSTEM RESET synchronous_standby_names" -c "SELECT pg_reload_conf()"`},
		"a late standby": {&admin.ServerHealth{Standbys: []admin.Standby{{Name: "b", Lag: 2 * time.Minute, Bytes: 5e6}}},
			"standby_behind", "standby b is 2m behind, and has not applied 5.0 MB of the log",
			`psql -c "SELECT * FROM pg_stat_replication"`},
		"a replica": {&admin.ServerHealth{Replica: &admin.Replica{Receives: true, Applied: ago(time.Hour)}}, "", "", ""},
		"a late replica": {&admin.ServerHealth{Replica: &admin.Replica{Receives: true, Applied: ago(time.Hour), Bytes: 5}},
			"replica_behind", "this server is a standby, and applied the last commit 1h ago; 5 B of the log wait", receives},
		"a new replica": {&admin.ServerHealth{Replica: &admin.Replica{Receives: true, Bytes: 5}}, "", "", ""},
		"a late new replica": {&admin.ServerHealth{Replica: &admin.Replica{Receives: true, Bytes: 2e9}},
			"replica_behind", "this server is a standby, and has applied no commit since its start; 2.0 GB of the log wait", receives},
		"a replica alone": {&admin.ServerHealth{Replica: &admin.Replica{}}, "replica_behind",
			"this server is a standby without a connection to its primary server; it shows old data", receives},
	})
}

func TestMissingRightsAndAutovacuumAreProblems(t *testing.T) {
	rights := func(missing ...string) *admin.ServerHealth {
		return &admin.ServerHealth{Rights: admin.Rights{User: "Ann", Schema: "jobs", Missing: missing}}
	}
	testServerProblems(t, map[string]serverTest{
		"no autovacuum": {&admin.ServerHealth{NoAutovacuum: true}, "autovacuum_off",
			"autovacuum is off; dead rows make claims slower and slower",
			`psql -c "ALTER SYSTEM SET autovacuum = on" -c "SELECT pg_reload_conf()"`},
		"a standby without autovacuum": {&admin.ServerHealth{NoAutovacuum: true, Replica: &admin.Replica{Receives: true}}, "", "", ""},
		"a reader":                     {rights("DELETE ON tasks", "INSERT ON tasks", "UPDATE ON tasks"), "", "", ""},
		"a role that may not delete": {rights("DELETE ON tasks", "DELETE ON workers"), "missing_rights",
			"role Ann lacks rights: DELETE ON tasks, DELETE ON workers",
			`psql -c "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA jobs TO \"Ann\""`},
		"a reader that may not read all": {rights("INSERT ON tasks", "SELECT ON output", "UPDATE ON tasks"), "missing_rights",
			"role Ann lacks rights: INSERT ON tasks, SELECT ON output, UPDATE ON tasks",
			`psql -c "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA jobs TO \"Ann\""`},
	})
}

// serverTest has the health of a server and the problem to expect, if any.
type serverTest struct {
	health             *admin.ServerHealth
	code, message, try string
}

func testServerProblems(t *testing.T, tests map[string]serverTest) {
	t.Helper()
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var want []present.Problem
			if test.code != "" {
				want = []present.Problem{{Code: test.code, Message: test.message, Try: test.try}}
			}
			got := present.ServerProblems(test.health, noon)
			if len(got)+len(want) > 0 {
				testkit.Equal(t, "problems", got, want)
			}
		})
	}
}
