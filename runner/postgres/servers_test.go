package postgres_test

import (
	"fmt"
	"testing"

	"example.com/runner/internal/testkit"
	"example.com/runner/internal/testkit/pgkit"
	"example.com/runner/jobs"
	"example.com/runner/runner/postgres"
)

// TestSQLFindsTheSameServer compares ServerIndex with the query in docs/postgres.md.
func TestSQLFindsTheSameServer(t *testing.T) {
	pool := handle(t, pgkit.Address(t))
	for _, servers := range []int{1, 2, 3, 100} {
		for key, spec := range map[string]jobs.Spec{
			"queue:default": {},
			"queue:mail":    {Queue: "mail"},
			"lane:acct 7":   {Queue: "mail", Lane: "acct 7"},
			"lane:größe":    {Lane: "größe"},
		} {
			var number int
			testkit.NoError(t, pool.QueryRowContext(t.Context(), `SELECT i FROM generate_series(1, $1::int) i
ORDER BY sha256(convert_to(i || ' ' || $2, 'UTF8')) DESC LIMIT 1`, servers, key).Scan(&number))
			testkit.Equal(t, fmt.Sprintf("index of the server of %s, of %d", key, servers), postgres.ServerIndex(spec, servers), number-1)
		}
	}
}

func TestANewServerGetsItsShareAndNoOtherKeyMoves(t *testing.T) {
	const keys, servers = 10_000, 9
	counts := make([]int, servers+1)
	for i := range keys {
		spec := jobs.Spec{Lane: fmt.Sprint("acct-", i)}
		before, after := postgres.ServerIndex(spec, servers), postgres.ServerIndex(spec, servers+1)
		if after != before && after != servers {
			t.Fatalf("lane %s moved from server %d to %d, want %d or no move", spec.Lane, before, after, servers)
		}
		counts[after]++
	}
	for i, n := range counts {
		testkit.Between(t, fmt.Sprintf("keys of server %d of 10", i), n, 900, 1100)
	}
}
