package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5"

	"example.com/runner/db/internal/sqltext"
	"example.com/runner/db/schema"
	"example.com/runner/internal/pgserver"
)

// TestStatementsAboutTheServerAreUnderstood prepares every statement of this package on a server, which checks its names and types. A test
// of package db does the same for its own statements.
func TestStatementsAboutTheServerAreUnderstood(t *testing.T) {
	s, err := pgserver.Start(t.Context())
	if errors.Is(err, pgserver.ErrNone) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}()
	conn, err := pgx.Connect(t.Context(), s.Address("postgres"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	setup := "CREATE SCHEMA ours; SET search_path = ours;"
	for _, m := range schema.Migrations(schema.Postgres) {
		setup += m.Text()
	}
	if _, err := conn.Exec(t.Context(), setup+"; SET search_path = pg_catalog"); err != nil {
		t.Fatal(err)
	}
	dialect := Dialect("ours")
	for _, statement := range []*sqltext.Statement{serverVersion, selectOurs, setVersion, hasSchema, serverSize, outerServer,
		selectServerTriggers, notify,
		serverHighestID, serverSetID, serverSetWorker, serverFrozen, sqltext.Query(SelectBackend),
		sqltext.Query(fmt.Sprintf(lockExclusive, 1)),
		sqltext.Query(fmt.Sprintf(lockTogether, 1))} {
		if _, err := conn.Prepare(t.Context(), "", dialect.Text(statement)); err != nil {
			t.Errorf("%v: %s", err, dialect.Text(statement))
		}
	}
}
