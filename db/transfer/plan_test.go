package transfer

import (
	"path/filepath"
	"testing"

	"example.com/runner/db"
	"example.com/runner/db/internal/postgres"
	"example.com/runner/db/internal/sqltext"
	"example.com/runner/db/internal/statementtest"
	"example.com/runner/test/testkit/pgkit"
)

// plans holds the expected query plans of the statements of this package, by
// the names of the statements.
var plans = statementtest.Plans{
	"selectLastID": {Text: selectLastID, Allow: []string{"SEARCH tasks", "SCAN tasks"}}, // reads one row from the end of the table
	"copyAll":      {Text: copyAll.With(parts("counters")), Allow: []string{"SCAN counters", "USE TEMP B-TREE FOR GROUP BY"}},
	"clearRows":    {Text: clearRows.With(sqltext.Parts{"table": "{totals}"}), Allow: []string{"SCAN totals"}},
	"copyRow": {Text: copyRow.With(sqltext.Parts{"table": "{pauses}",
		"columns": `"queue", "paused_at", "paused_by"`, "values": "?, ?, ?"})},
	"endWorkers": {Text: endWorkers, By: []string{"workers USING INDEX workers_live"}, Allow: []string{"SCAN workers"}},
	"countRows": {Text: countRows.With(parts("tasks")),
		Allow: []string{"SCAN tasks"}}, // the statement runs once, at the end of a move
	"selectClaimed": {Text: selectClaimed, By: []string{"INDEX tasks_running"},
		Allow: []string{"SCAN tasks USING COVERING INDEX tasks_running",
			"SCAN tasks USING INDEX tasks_running"}},
	// This statement reads the first row of each table.
	"selectSome": {Text: selectSome, Allow: []string{"SCAN tasks", "SCAN schedules", "SCAN limits", "SCAN pauses", "SCAN CONSTANT ROW"}},
}

func TestEachStatementFindsItsRowsByIndex(t *testing.T) {
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "test.db"), db.Options{Create: true, Normal: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	plans.Check(t, d.Engine().Reader(), d.Engine().Dialect())
}

func TestEveryStatementHasPlan(t *testing.T) { plans.Complete(t) }

func TestPostgreSQLPreparesEveryStatement(t *testing.T) {
	dialect := postgres.Dialect("ours")
	texts := map[string]string{}
	for name, p := range plans {
		texts[name] = dialect.Text(p.Statement())
	}
	pgkit.Prepare(t, texts)
}
