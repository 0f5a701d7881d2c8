// Package statementtest helps tests to check SQL statements. Each statement
// must have an expected query plan, and this plan must find rows by indexes in
// SQLite.
package statementtest

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"example.com/runner/db/internal/sqltext"
)

// Plan is a statement with its expected query plan. The output of EXPLAIN QUERY
// PLAN must contain the texts in By. A line with a scan or a sort must begin
// with a text in Allow.
type Plan struct {
	Text  any // a *sqltext.Statement or a template
	By    []string
	Allow []string
}

// Plans maps the name of each statement of a package to its plan. The key of a
// variant of a statement is the name of the statement, a space and a
// description of the variant.
type Plans map[string]Plan

// Statement returns the statement of a plan.
func (p Plan) Statement() *sqltext.Statement {
	if s, ok := p.Text.(*sqltext.Statement); ok {
		return s
	}
	return sqltext.Query(p.Text.(string))
}

// Check compares the plan of each statement with the expected plan.
func (p Plans) Check(t *testing.T, read *sqlx.DB, dialect *sqltext.Dialect) {
	t.Helper()
	for name, plan := range p {
		plan.Check(t, name, Explain(t, read, dialect.Text(plan.Statement())))
	}
}

// Check reports expected texts that are missing in the lines of a plan, and
// scans and sorts that aren't allowed.
func (p Plan) Check(t *testing.T, name string, lines []string) {
	t.Helper()
	whole := strings.Join(lines, "\n\t")
	for _, by := range p.By {
		if !strings.Contains(whole, by) {
			t.Errorf("%s does not find its rows by %q:\n\t%s", name, by, whole)
		}
	}

	for _, line := range lines {
		if !strings.HasPrefix(line, "SCAN ") && !strings.HasPrefix(line, "USE TEMP B-TREE") {
			continue
		}
		if !slices.ContainsFunc(p.Allow, func(allowed string) bool { return strings.HasPrefix(line, allowed) }) {
			t.Errorf("%s: got the plan %q, want no scan and no sort:\n\t%s", name, line, whole)
		}
	}
}

// Explain returns the lines of the plan of a statement's text.
func Explain(t *testing.T, read *sqlx.DB, text string) []string {
	t.Helper()
	var steps []struct{ ID, Parent, NotUsed, Detail string }
	if err := read.Select(&steps, "EXPLAIN QUERY PLAN "+text, AnyArgs(text)...); err != nil {
		t.Fatalf("%v: %s", err, text)
	}

	lines := make([]string, len(steps))
	for i, step := range steps {
		lines[i] = step.Detail
	}

	return lines
}

var numbered = regexp.MustCompile(`\?([0-9]+)`)

// AnyArgs returns arguments for a statement. Their values are arbitrary,
// because they don't change the plan.
func AnyArgs(text string) []any {
	args := make([]any, strings.Count(text, "?"))
	if all := numbered.FindAllStringSubmatch(text, -1); all != nil {
		most := 0
		for _, match := range all {
			n, _ := strconv.Atoi(match[1])
			most = max(most, n)
		}
		args = args[:most]
	}

	for i := range args {
		args[i] = "[]" // the text of each argument is valid JSON, because some statements expect lists
	}

	return args
}
