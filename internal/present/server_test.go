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
