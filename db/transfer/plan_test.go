package transfer

import (
	"path/filepath"
	"testing"

	"example.com/runner/db"
	"example.com/runner/db/internal/postgres"
	"example.com/runner/db/internal/sqltext"
	"example.com/runner/db/internal/statementtest"
	"example.com/runner/internal/testkit/pgkit"
)

// plans holds the expected query plans of the statements of this package, by the names of the statements.
var plans = statementtest.Plans{
	"selectLastID":  {Text: selectLastID, Allow: []string{"SEARCH tasks", "SCAN tasks"}}, // reads one row from the end of the table
	"selectNextIDs": {Text: selectNextIDs, By: []string{"tasks USING INTEGER PRIMARY KEY (rowid>?)"}},
	"copyThese": {Text: copyThese.With(copiedTable{name: "output", key: "task_id", order: "task_id, generation_id, seq"}.parts()),
		By: []string{"output USING INDEX sqlite_autoindex_output_1 (task_id>? AND task_id<?)"}},
	"copyAll": {Text: copyAll.With(copiedTable{name: "limits", order: "kind, name"}.parts()), Allow: []string{"SCAN limits"}},
	"sumCounters": {Text: copyAll.With(copiedTable{name: "counters", order: "queue, state, minute", rows: sumCounters}.parts()),
		Allow: []string{"SCAN counters", "USE TEMP B-TREE FOR ORDER BY"}},
	"clearRows": {Text: clearRows.With(sqltext.Parts{"table": "{totals}"}), Allow: []string{"SCAN totals"}},
	"copyRow": {Text: copyRow.With(sqltext.Parts{"table": "{pauses}",
		"columns": `"queue", "paused_at", "paused_by"`, "values": "?, ?, ?"})},
	"endWorkers": {Text: endWorkers, By: []string{"workers USING INDEX workers_live"}, Allow: []string{"SCAN workers"}},
	"countRows": {Text: countRows.With(copiedTable{name: "tasks"}.parts()),
		Allow: []string{"SCAN tasks"}}, // the statement runs once, at the end of a move
	"selectClaimed": {Text: selectClaimed, By: []string{"INDEX tasks_running"},
		Allow: []string{"SCAN tasks USING COVERING INDEX tasks_running",
			"SCAN tasks USING INDEX tasks_running"}},
	// This statement reads the first row of each table.
	"selectSome": {Text: selectSome, Allow: []string{"SCAN tasks", "SCAN schedules", "SCAN limits", "SCAN pauses", "SCAN CONSTANT ROW"}},
}

func TestEachStatementFindsItsRowsByAnIndex(t *testing.T) {
	d, err := db.Open(t.Context(), filepath.Join(t.TempDir(), "test.db"), db.Options{Create: true, Normal: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	plans.Check(t, d.Engine().Reader(), d.Engine().Dialect())
}

func TestEveryStatementHasAPlan(t *testing.T) { plans.Complete(t) }

func TestPostgreSQLPreparesEveryStatement(t *testing.T) {
	dialect := postgres.Dialect("ours")
	texts := map[string]string{}
	for name, p := range plans {
		texts[name] = dialect.Text(p.Statement())
	}
	pgkit.Prepare(t, texts)
}
