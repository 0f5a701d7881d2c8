// Package pgkit starts PostgreSQL servers for tests.
package pgkit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"example.com/runner/db/schema"
	"example.com/runner/test/pgserver"
	"example.com/runner/test/testkit"
)

// Need skips a test that needs a server, unless the tests run at full size:
// go test ./... starts no server, and CI's step postgres starts them.
func Need(t testing.TB) {
	t.Helper()
	if !testkit.Full() {
		t.Skip("needs a PostgreSQL server; scripts/postgres runs it")
	}
}

// Start starts a PostgreSQL server for one test. It skips the test as Need
// does, and if PostgreSQL isn't installed.
func Start(t testing.TB, settings ...string) *pgserver.Server {
	t.Helper()
	Need(t)
	server, err := pgserver.Start(t.Context(), settings...)
	if errors.Is(err, pgserver.ErrNone) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("start PostgreSQL: %v", err)
	}

	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Errorf("close PostgreSQL: %v", err)
		}
	})
	return server
}

var (
	startShared = sync.OnceValues(func() (*pgserver.Server, error) {
		server, err := pgserver.Start(context.Background())
		if err == nil {
			CloseShared = func() { _ = server.Close() }
		}
		return server, err
	})
	schemas atomic.Int64
)

// CloseShared stops the server that Shared has started, if any. TestMain must
// call it after the tests.
var CloseShared = func() {}

// Shared returns a server that all tests of this program use. It skips the
// test as Start does.
func Shared(t testing.TB) *pgserver.Server {
	t.Helper()
	Need(t)
	server, err := startShared()
	if errors.Is(err, pgserver.ErrNone) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatalf("start PostgreSQL: %v", err)
	}

	return server
}

// NewSchema returns the name of a schema that no other test uses.
func NewSchema() string { return fmt.Sprintf("test%d", schemas.Add(1)) }

// Address returns the address of a new schema on the shared server.
func Address(t testing.TB) string {
	t.Helper()
	return Shared(t).Address("postgres", "search_path="+NewSchema())
}

// Prepare prepares SQL statements on a new server, so that the server checks
// the names and types in them. Statements must use the schema "ours", which has
// empty tables. The keys of the map are names of the statements, for error
// messages.
//
// For each statement, Prepare returns the numbers of the parameters that the
// server treats as integers of at most 32 bits. A caller must not pass a larger
// integer for such a parameter.
func Prepare(t testing.TB, statements map[string]string) (small map[string][]int) {
	t.Helper()
	conn := emptyTables(t)
	small = map[string][]int{}
	for name, text := range statements {
		description, err := conn.Prepare(t.Context(), "", text)
		if err != nil {
			t.Errorf("prepare %s: got error %v, want none\n%s", name, err, text)
			continue
		}
		for i, oid := range description.ParamOIDs {
			if oid == pgtype.Int4OID || oid == pgtype.Int2OID {
				small[name] = append(small[name], i+1)
			}
		}
	}

	return small
}

// Plans returns the query plan of each SQL statement, in a session with the
// given settings. The tables are empty, as in Prepare. The plans are those for
// prepared statements, which don't depend on the values of parameters.
func Plans(t testing.TB, settings, statements map[string]string) map[string]string {
	t.Helper()
	conn := emptyTables(t)
	for name, value := range settings {
		if _, err := conn.Exec(t.Context(), "SELECT set_config($1, $2, false)", name, value); err != nil {
			t.Fatalf("set %s: %v", name, err)
		}
	}

	plans := map[string]string{}
	for name, text := range statements {
		description, err := conn.Prepare(t.Context(), "statement", text)
		if err != nil {
			t.Fatalf("prepare %s: %v", name, err)
		}

		explain := "EXPLAIN EXECUTE statement"
		if n := len(description.ParamOIDs); n > 0 {
			explain += "(NULL" + strings.Repeat(", NULL", n-1) + ")"
		}

		rows, err := conn.Query(t.Context(), explain, pgx.QueryExecModeSimpleProtocol)
		if err != nil {
			t.Fatalf("explain %s: %v", name, err)
		}

		lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
		if err == nil {
			err = conn.Deallocate(t.Context(), "statement")
		}
		if err != nil {
			t.Fatalf("explain %s: %v", name, err)
		}

		plans[name] = strings.Join(lines, "\n")
	}

	return plans
}

// emptyTables creates runner's tables in the schema "ours" of a new server. It
// returns a connection to that server.
func emptyTables(t testing.TB) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), Start(t).Address("postgres"))
	if err != nil {
		t.Fatalf("connect to PostgreSQL: %v", err)
	}

	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	setup := "CREATE SCHEMA ours; SET search_path = ours;"
	for _, m := range schema.Migrations(schema.Postgres) {
		setup += m.Text()
	}

	if _, err := conn.Exec(t.Context(), setup+"; SET search_path = pg_catalog"); err != nil {
		t.Fatalf("create the tables: %v", err)
	}

	return conn
}
