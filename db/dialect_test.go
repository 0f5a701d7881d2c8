package db

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/postgres"
	"example.com/runner/internal/testkit"
	"example.com/runner/internal/testkit/pgkit"
)

// onlySQLite lists the statements that run only on SQLite.
var onlySQLite = []string{"claimArm", "suspectArm", "peekTasks", "claimTasks", "sparse suspects", "completeSome", "insertOne"}

// TestPostgreSQLPreparesEveryStatement prepares every statement of this package on a server, which checks its names and types.
func TestPostgreSQLPreparesEveryStatement(t *testing.T) {
	statements := map[string]any{"completeTasks": completeTasks, "selectAtWork": engine.SelectAtWork, "insertTasks32": insertTasks32,
		"insertTasks64": insertTasks64, "insertTasks128": insertTasks128, "assertUnused": assertUnused, "assertCompleted": assertCompleted}
	for name, p := range plans {
		statements[name] = p.text
	}
	for _, name := range onlySQLite {
		delete(statements, name)
	}
	for _, n := range []int{1, 2, 30} {
		c := newClaimer("w", make([]ClaimJob, n), postgres.ClaimJob)
		for name, s := range map[string]*statement{"tasks": c.tasks, "suspects": c.suspect, "peek": c.peek} {
			statements[fmt.Sprintf("claim of %d jobs: %s", n, name)] = s
		}
	}
	dialect := postgres.Dialect("ours")
	texts := map[string]string{}
	for name, s := range statements {
		texts[name] = dialect.Render(templateOf(s))
	}
	pgkit.Prepare(t, texts)
}

func TestAClaimOnAServerLocksTheTasksOfEachJob(t *testing.T) {
	c := newClaimer("w", make([]ClaimJob, 2), postgres.ClaimJob)
	got := postgres.Dialect("ours").Text(c.tasks)
	const lock = "LIMIT $7 FOR UPDATE SKIP LOCKED"
	if n := strings.Count(got, lock); n != 2 {
		t.Errorf("got %q %d times, want it twice:\n%s", lock, n, got)
	}
	testkit.Contains(t, got, "LIMIT 0 + $7", "worker = $8", "CAST($4 AS bigint) AS most")
}

// TestReadingStatementsChangeNothing checks the field Reads of each statement, because only a commit that may have changed rows is
// notified.
func TestReadingStatementsChangeNothing(t *testing.T) {
	writes := regexp.MustCompile(`\b(INSERT INTO|DELETE FROM|UPDATE) |FOR UPDATE`)
	for name, p := range plans {
		if s, ok := p.text.(*statement); ok && s.Reads == writes.MatchString(s.Template) {
			t.Errorf("%s: got Reads = %t, want %t", name, s.Reads, !s.Reads)
		}
	}
}
