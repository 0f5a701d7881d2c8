// Package pgkit starts PostgreSQL servers for tests.
package pgkit

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"example.com/runner/db/schema"
	"example.com/runner/internal/pgserver"
)

// Start starts a PostgreSQL server, which ends with the test. It skips the test if PostgreSQL is not installed.
func Start(t testing.TB, settings ...string) *pgserver.Server {
	t.Helper()
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

// Prepare prepares statements on a new server, which checks their names and types. The keys of statements are their names. The
// tables are in a schema with the name ours.
func Prepare(t testing.TB, statements map[string]string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), Start(t).Address("postgres"))
	if err != nil {
		t.Fatalf("connect to PostgreSQL: %v", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	setup := "CREATE SCHEMA ours; SET search_path = ours;"
	for _, m := range schema.Migrations(schema.Postgres) {
		setup += m.Text()
	}
	if _, err := conn.Exec(t.Context(), setup+"; SET search_path = pg_catalog"); err != nil {
		t.Fatalf("create the tables: %v", err)
	}
	for name, text := range statements {
		if _, err := conn.Prepare(t.Context(), "", text); err != nil {
			t.Errorf("prepare %s: got error %v, want none\n%s", name, err, text)
		}
	}
}
