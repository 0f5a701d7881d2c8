package db

import (
	"context"
	"errors"
	"maps"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/postgres"
	"example.com/runner/db/schema"
	"example.com/runner/internal/pgserver"
)

// onFiles are statements that run only on SQLite.
var onFiles = []string{"completeSome", "insertOne"}

// TestEveryStatementIsUnderstoodByPostgreSQL prepares every statement of this package on a server, which checks its names and types.
func TestEveryStatementIsUnderstoodByPostgreSQL(t *testing.T) {
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
	dialect := postgres.Dialect("ours")
	texts := map[string]any{"completeTasks": completeTasks, "selectAtWork": engine.SelectAtWork, "insertTasks32": insertTasks32,
		"insertTasks64":  insertTasks64,
		"insertTasks128": insertTasks128, "assertUnused": assertUnused, "assertCompleted": assertCompleted}
	for name, p := range plans {
		texts[name] = p.text
	}
	maps.DeleteFunc(texts, func(name string, _ any) bool {
		return name == "claimArm" || name == "suspectArm" || name == "peekTasks" || name == "claimTasks" || name == "sparse suspects"
	})
	for _, name := range onFiles {
		delete(texts, name)
	}
	for _, n := range []int{1, 2, 30} {
		c := newClaimer("w", make([]ClaimJob, n), postgres.ClaimJob)
		texts["a claim"], texts["a claim of suspects"], texts["a peek"] = c.tasks, c.suspect, c.peek
	}
	for name, text := range texts {
		text := dialect.Render(templateOf(text))
		if _, err := conn.Prepare(t.Context(), "", text); err != nil {
			t.Errorf("%s: %v: %s", name, err, text)
		}
	}
}

func TestAClaimOnAServerLocksTheTasksOfEachJob(t *testing.T) {
	c := newClaimer("w", make([]ClaimJob, 2), postgres.ClaimJob)
	got := postgres.Dialect("ours").Text(c.tasks)
	if strings.Count(got, "LIMIT $7 FOR UPDATE SKIP LOCKED") != 2 || !strings.Contains(got, "LIMIT 0 + $7") ||
		!strings.Contains(got, "worker = $8") ||
		!strings.Contains(got, "CAST($4 AS bigint) AS most") {
		t.Errorf(`got %+v; want Count(got, "LIMIT $7 FOR UPDATE SKIP LOCKED") = 2, Contains(got, "LIMIT 0 + $7"), `+
			`Contains(got, "worker = $8"), Contains(got, "CAST($4 AS bigint) AS most")`,
			got)
	}
}

// TestWhatReadsChangesNothing checks the field Reads of each statement, because only a commit that may have changed rows is notified.
func TestWhatReadsChangesNothing(t *testing.T) {
	writes := regexp.MustCompile(`\b(INSERT INTO|DELETE FROM|UPDATE) |FOR UPDATE`)
	for name, p := range plans {
		if s, ok := p.text.(*statement); ok && s.Reads == writes.MatchString(s.Template) {
			t.Errorf("%s reads: %t", name, s.Reads)
		}
	}
}
