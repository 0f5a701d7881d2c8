package db

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"example.com/runner/db/internal/sqltext"
	"example.com/runner/db/schema"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/usercode"
	"example.com/runner/jobs"
	commands "example.com/runner/jobs/command"
	"example.com/runner/test/testkit"
)

// schemaText returns the text of all migrations for a file without a prefix.
func schemaText(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, m := range schema.Migrations(schema.SQLite) {
		all.WriteString((&sqltext.Dialect{}).Text(sqltext.Definition(m.Text())))
	}
	return all.String()
}

func matches(pattern, text string) []string {
	var found []string
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		found = append(found, match[1])
	}
	return found
}

func TestTableHasStatesOfPackageJobs(t *testing.T) {
	_, list, ok := strings.Cut(schemaText(t), "CHECK (CASE state")
	if !ok {
		t.Fatal("got a schema without a CHECK of the state, want one")
	}
	list, _, _ = strings.Cut(list, "ELSE 0 END")
	var want []string
	for _, s := range taskspec.AllStates() {
		want = append(want, string(s))
	}
	testkit.Equal(t, "states in the CHECK", matches(`WHEN '(\w*)'`, list), want)
}

func TestEveryStateInSQLExists(t *testing.T) {
	text := schemaText(t)
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text += string(source)
	}
	// 'draining' is a state of workers, not of tasks.
	words := append(matches(`state\s*(?:=|<>|IS|IS NOT)\s*'([^'"]*)'`, text), matches(`'(\w+)' AS state`, text)...)
	if len(words) < 20 {
		t.Fatalf("got states %v, want at least 20", words)
	}
	for _, word := range words {
		if !slices.Contains(taskspec.AllStates(), jobs.State(word)) && word != "draining" {
			t.Errorf("got state '%s' in SQL, want one of %v", word, taskspec.AllStates())
		}
	}
}

func TestLimitsOfPlainSQLMatchPackageJobs(t *testing.T) {
	text := schemaText(t)
	for column, limit := range map[string]int{"args": taskspec.MaxArgs, "env": taskspec.MaxEnv, "label": taskspec.MaxText,
		"lane":       taskspec.MaxText,
		"created_by": taskspec.MaxText, "retry_on": taskspec.MaxCodes, "cwd": taskspec.MaxPath, "env_file": taskspec.MaxPath,
		"input": taskspec.MaxInput} {
		if want := fmt.Sprintf("length(CAST(NEW.%s AS BLOB)) > %d", column, limit); !strings.Contains(text, want) {
			t.Errorf("the trigger of enqueue has no text %q, want it", want)
		}
	}
	for want, of := range map[string]any{
		"length(NEW.queue) > %d":                              taskspec.MaxName,
		"length(NEW.job) > %d":                                taskspec.MaxName,
		"length(CAST(key AS BLOB)) > %d":                      taskspec.MaxText,
		"NEW.timeout NOT BETWEEN 1 AND %d":                    taskspec.MaxDelay.Milliseconds(),
		"NEW.backoff_max NOT BETWEEN 0 AND %d":                taskspec.MaxDelay.Milliseconds(),
		"CHECK (length(data) <= %d)":                          taskspec.MaxInput,
		"coalesce(NEW.job, '%s')":                             commands.Job,
		"coalesce(NEW.queue, '%s')":                           jobs.NewSpec("").Queue,
		"coalesce(NEW.priority, %d)":                          taskspec.DefaultPriority,
		"coalesce(NEW.max_losses, %d)":                        jobs.NewSpec("").MaxLosses,
		"coalesce(t.options ->> '$.kill_after', %d)":          jobs.NewSpec("").KillAfter.Milliseconds(),
		"coalesce(t.options ->> '$.backoff', '%s')":           jobs.NewSpec("").Backoff.Strategy,
		"coalesce(t.options ->> '$.backoff_delay', %d)":       jobs.NewSpec("").Backoff.Delay.Milliseconds(),
		"coalesce(t.options ->> '$.backoff_max', %d)":         jobs.NewSpec("").Backoff.Max.Milliseconds(),
		"coalesce(t.options ->> '$.output_limit', %d)":        jobs.NewSpec("").OutputLimit,
		"NEW.backoff = '%s' OR NEW.backoff = 'linear' OR NEW": jobs.BackoffFixed,
	} {
		if want = fmt.Sprintf(want, of); !strings.Contains(text, want) {
			t.Errorf("the schema has no text %q, want it", want)
		}
	}
}

// TestMaxDepthMatchesSQLite checks that MaxDepth is the greatest depth of JSON
// that SQLite accepts. SQLite's documentation calls this depth a detail of the
// implementation, so the test asks SQLite itself.
func TestMaxDepthMatchesSQLite(t *testing.T) {
	d := openTest(t)
	for depth, want := range map[int]bool{usercode.MaxDepth: true, usercode.MaxDepth + 1: false} {
		var valid bool
		if err := d.read.Get(&valid, `SELECT json_valid(?)`, strings.Repeat("[", depth)+strings.Repeat("]", depth)); err != nil ||
			valid != want {
			t.Errorf("JSON of depth %d: got valid %v and error %v, want valid %v", depth, valid, err, want)
		}
	}
}

func TestEveryTableIsStrictAndEveryColumnAndIndexIsExplained(t *testing.T) {
	var table, above string
	for line := range strings.Lines(schemaText(t)) {
		line = strings.TrimRight(line, "\n")
		switch {
		case strings.HasPrefix(line, "CREATE TABLE "):
			table = strings.Fields(line)[2]
			if !strings.HasPrefix(above, "-- ") {
				t.Errorf("table %s: got no comment above it, want one", table)
			}
		case strings.HasPrefix(line, "CREATE "):
			if !strings.HasPrefix(above, "-- ") {
				t.Errorf("%s: got no comment above it, want one", line)
			}
		case strings.HasPrefix(line, ")"):
			if !strings.Contains(line, "STRICT") {
				t.Errorf("table %s: got %q at its end, want STRICT", table, line)
			}
			table = ""
		case table == "tasks" && regexp.MustCompile(`^  [a-z_]+ +(INTEGER|TEXT|BLOB)`).MatchString(line):
			// Only the table tasks must explain each column, because a column
			// of the same name has the same meaning in the other tables.
			if column := strings.Fields(line)[0]; !strings.Contains(line, "-- ") && !slices.Contains(obvious, column) {
				t.Errorf("column %s.%s: got no comment, want one", table, column)
			}
		}
		above = line
	}
	d := openTest(t)
	var loose []string
	if err := d.read.Select(&loose, `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' AND NOT strict
		AND name NOT LIKE 'sqlite%'`); err != nil || loose != nil {
		t.Errorf("got tables %v that are not strict and error %v, want neither", loose, err)
	}
}

// obvious lists the columns that need no comment, because their names and
// CHECKs explain them.
var obvious = []string{"queue", "created_at"}

func TestNoPredicateUsesIN(t *testing.T) {
	for line := range strings.Lines(schemaText(t)) {
		code, _, _ := strings.Cut(line, "--")
		if regexp.MustCompile(`\bIN\s*\(`).MatchString(code) {
			t.Errorf("got IN, which builds a temporary table in every statement, want = and OR: %s", line)
		}
	}
}

func TestTaskColumnsHasEveryColumnOfTasks(t *testing.T) {
	d := openTest(t)
	var columns []string
	if err := d.read.Select(&columns, `SELECT 'tasks.' || name FROM pragma_table_info('tasks')
		WHERE name <> 'lane_slot' ORDER BY cid`); err != nil { // taskColumns leaves out lane_slot, because only lane.go reads it
		t.Fatal(err)
	}
	if len(columns) > 32 {
		t.Errorf("tasks has %d columns, want at most 32", len(columns))
	}
	read := strings.Fields(strings.ReplaceAll(taskColumns, ",", " "))
	if got := read[:min(len(read), len(columns))]; !slices.Equal(got, columns) {
		t.Errorf("got taskColumns that begin with %v, want the columns of the table, %v", got, columns)
	}
}
