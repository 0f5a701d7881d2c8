package db

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/runner/db/internal/engine"
	"example.com/runner/db/internal/postgres"
	"example.com/runner/db/internal/sqltext"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/pgkit"
)

// onlySQLite lists the statements that run only on SQLite.
var onlySQLite = []string{"completeSome", "insertOne"}

// smallNumbers lists the statements in which a parameter may have 32 bits. The
// values of these parameters are always small: the length of a task's
// arguments, a number of tasks in one transaction, or a number of bytes of
// output.
var smallNumbers = []string{"addCount", "cutOutput"}

// TestPostgreSQLPreparesEveryStatement prepares every statement of this package
// on a server, which checks its names and types. PostgreSQL derives the type of
// a parameter from its first use. If that use is next to a small constant, the
// type is a 32-bit integer, so large values would fail.
func TestPostgreSQLPreparesEveryStatement(t *testing.T) {
	statements := map[string]*statement{"completeTasks": completeTasks, "selectAtWork": engine.SelectAtWork, "assertUnused": assertUnused,
		"assertCompleted": assertCompleted, "insertArrays": insertArrays,
		"selectLookAbove": selectLookAbove, "selectFirsts": selectFirsts,
		"claimAbove": claimAbove.Of(1), "claimAbove 8": claimAbove.Of(8)}
	for name, p := range plans {
		statements[name] = p.Statement()
	}
	for _, name := range onlySQLite {
		delete(statements, name)
	}
	for _, n := range []int{1, 2, 30, 32, 64, 128} {
		for name, s := range map[string]*sqltext.Series{"claimTasks": claimTasks, "peekTasks": peekTasks,
			"insertPlain": insertPlain} {
			statements[fmt.Sprintf("%s with %d parts", name, n)] = s.Of(n)
		}
	}
	dialect := postgres.Dialect("ours")
	texts := map[string]string{}
	for name, s := range statements {
		texts[name] = dialect.Text(s)
	}
	for name, parameters := range pgkit.Prepare(t, texts) {
		if slices.Contains(smallNumbers, name) {
			continue
		}
		for _, n := range parameters {
			if !regexp.MustCompile(fmt.Sprintf(`(LIMIT|OFFSET) (0 \+ )?\$%[1]d\b|\$%[1]d = 1\b`, n)).MatchString(texts[name]) {
				t.Errorf("%s: got $%d as an integer of 32 bits, want 64 bits, or a limit or a flag\n%s", name, n, texts[name])
			}
		}
	}
}

// TestKeptPlansFindTheirTasksByIndex checks the plans of frequent statements on
// a server. A session may plan a statement while the tables are empty and keep
// the plan when the tables have grown. So the plan must use an index even for
// an empty table.
func TestKeptPlansFindTheirTasksByIndex(t *testing.T) {
	dialect := postgres.Dialect("ours")
	texts := map[string]string{}
	for name, s := range map[string]*statement{"claimTasks": claimTasks.Of(1), "claimTasks of 30 jobs": claimTasks.Of(30),
		"claimThese": claimThese, "completeTasks": completeTasks, "assertCompleted": assertCompleted,
		"completeTask": completeTask, "finishTask": finishTask, "releaseTask": releaseTask, "renewLeases": renewLeases,
		"selectTask": selectTask, "selectOnly": selectOnly, "selectSuspects": selectSuspects, "selectLook": selectLook,
		"selectQueues": selectQueues, "selectDue": selectDue, "claimAbove": claimAbove.Of(1), "claimAbove of 8 ranges": claimAbove.Of(8),
		"selectLookAbove": selectLookAbove, "selectFirsts": selectFirsts, "selectOld": selectOld, "selectOldKept": selectOldKept} {
		texts[name] = dialect.Text(s)
	}
	scan := regexp.MustCompile(`(Index|Tid|Seq|Bitmap)[a-zA-Z ]* Scan .*on tasks`)
	for name, plan := range pgkit.Plans(t, postgres.WriteSettings, texts) {
		lines := strings.Split(plan, "\n")
		for i, line := range lines {
			if scan.MatchString(line) && !strings.Contains(line, "tasks_lost") && !strings.Contains(lines[i+1], "Cond: ") &&
				// A scan under a Limit of the plan needs no condition, because
				// it ends after the first entry of the index.
				!strings.Contains(lines[max(i-1, 0)], "->  Limit") {
				t.Errorf("%s: got the plan line %q without a condition on the index, want one\n%s", name, line, plan)
			}
		}
	}
}

func TestClaimOnServerLocksTasksOfEachJob(t *testing.T) {
	got := postgres.Dialect("ours").Text(claimTasks.Of(2))
	const lock = "LIMIT $7 FOR UPDATE SKIP LOCKED"
	if n := strings.Count(got, lock); n != 2 {
		t.Errorf("got %q %d times, want it twice:\n%s", lock, n, got)
	}
	testkit.Contains(t, got, "LIMIT 0 + $7", "worker = $8", "CAST($4 AS bigint) AS most")
}

// TestReadingStatementsChangeNothing checks the field Reads of each statement.
// The writer notifies other processes only if a commit may have changed rows,
// and it decides that by this field.
func TestReadingStatementsChangeNothing(t *testing.T) {
	writes := regexp.MustCompile(`\b(INSERT INTO|DELETE FROM|UPDATE) |FOR UPDATE`)
	for name, p := range plans {
		if s, ok := p.Text.(*statement); ok && s.Reads == writes.MatchString(s.Template) {
			t.Errorf("%s: got Reads = %t, want %t", name, s.Reads, !s.Reads)
		}
	}
}
