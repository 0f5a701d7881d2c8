package postgres_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"example.com/runner/test/testkit"
)

// connection opens a connection that runs some statements and stays open until
// the end of the test.
func connection(t *testing.T, address string, statements ...string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), address)
	testkit.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	run(t, conn, statements...)
	return conn
}

func run(t *testing.T, conn *pgx.Conn, statements ...string) {
	t.Helper()
	for _, text := range statements {
		if _, err := conn.Exec(t.Context(), text); err != nil {
			t.Fatalf("%s: got error %v, want none", text, err)
		}
	}
}
