package db

import (
	"slices"
	"strings"
	"testing"
	"time"

	"example.com/runner/db/internal/sqltext"
	"example.com/runner/db/internal/statementtest"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

func TestListsReadEndOfTableOrIndex(t *testing.T) {
	d := openTest(t)
	newest, sorted := Part{Limit: 50}, Part{Limit: 50, sorts: true}
	for name, c := range map[string]struct {
		filter jobs.Filter
		part   Part
		plan   statementtest.Plan
	}{
		"all": {jobs.Filter{}, newest, statementtest.Plan{Allow: []string{"SCAN tasks"}}},
		"one": {jobs.Filter{IDs: []int64{1}}, newest,
			statementtest.Plan{By: []string{byID}, Allow: []string{"SCAN json_each", "USE TEMP B-TREE FOR ORDER BY"}}},
		"a state of many": {jobs.Filter{States: []jobs.State{jobs.Completed}}, newest, statementtest.Plan{Allow: []string{"SCAN tasks"}}},
		"pending, few": {jobs.Filter{States: []jobs.State{jobs.Pending}}, sorted,
			statementtest.Plan{Allow: []string{"SCAN tasks USING INDEX tasks_pending", "SCAN tasks USING COVERING INDEX tasks_pending",
				"USE TEMP B-TREE FOR ORDER BY"}}},
		"pending, many": {jobs.Filter{States: []jobs.State{jobs.Pending}}, newest, statementtest.Plan{Allow: []string{"SCAN tasks"}}},
		"running": {jobs.Filter{States: []jobs.State{jobs.Running}}, sorted,
			statementtest.Plan{Allow: []string{"SCAN tasks USING INDEX tasks_running", "SCAN tasks USING COVERING INDEX tasks_running",
				"USE TEMP B-TREE FOR ORDER BY"}}},
		"failed": {jobs.Filter{States: []jobs.State{jobs.Failed}}, sorted,
			statementtest.Plan{Allow: []string{"SCAN tasks USING INDEX tasks_failed", "SCAN tasks USING COVERING INDEX tasks_failed",
				"USE TEMP B-TREE FOR ORDER BY"}}},
		"failed lately": {jobs.Filter{States: []jobs.State{jobs.Failed}, Since: time.Unix(9, 0)}, sorted,
			statementtest.Plan{By: []string{"tasks_failed (finished_at>?)"}, Allow: []string{"USE TEMP B-TREE FOR ORDER BY"}}},
		"finished lately": {jobs.Filter{States: taskspec.Finished(), Since: time.Unix(9, 0)}, sorted,
			statementtest.Plan{By: []string{"tasks_finished (finished_at>?)"}, Allow: []string{"USE TEMP B-TREE FOR ORDER BY"}}},
		"the page before": {jobs.Filter{Before: 9}, newest, statementtest.Plan{By: []string{"tasks USING INTEGER PRIMARY KEY (rowid<?)"}}},
		"a schedule": {jobs.Filter{Schedule: "s"}, sorted, statementtest.Plan{By: []string{"INDEX tasks_tick (schedule=?)"},
			Allow: []string{"USE TEMP B-TREE FOR ORDER BY"}}},
		"a batch": {jobs.Filter{Batch: 9}, Part{Limit: 5, Oldest: true},
			statementtest.Plan{By: []string{"INDEX tasks_batch (batch=?)"}}},
		"what came since": {jobs.Filter{After: 9}, newest, statementtest.Plan{By: []string{"tasks USING INTEGER PRIMARY KEY (rowid>?)"}}},
	} {
		list := listTasks
		if c.part.sorts {
			list = listSorted
		}
		for _, template := range []*statement{list, listIDs} {
			text := textOf(d, c.part, template, c.filter)
			lines := statementtest.Explain(t, d.read, text)
			if strings.Contains(text, "IN (SELECT tasks.id") &&
				!slices.ContainsFunc(lines, func(l string) bool { return strings.HasSuffix(l, byID) }) {
				t.Errorf("%s: got a plan that reads whole rows to sort them, want none: %v", name, lines)
			}
			c.plan.Check(t, name, lines)
			if c.part == newest && slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "INDEX tasks_") }) {
				t.Errorf("%s: got a plan with an index, want one that reads the end of the table: %v", name, lines)
			}
		}
	}
}

func TestCountsUpToLimitReadIndex(t *testing.T) {
	d := openTest(t)
	for state, index := range map[jobs.State]string{jobs.Pending: "tasks_pending", jobs.Running: "tasks_running",
		jobs.Failed:    "tasks_failed",
		jobs.Scheduled: "tasks_due", jobs.Retrying: "tasks_due"} {
		lines := statementtest.Explain(t, d.read, d.sql.Text(countSome.With(sqltext.Parts{
			"where": where(jobs.Filter{States: []jobs.State{state}}).template()})))
		allow := []string{"SCAN tasks USING COVERING INDEX " + index, "SCAN part"}
		statementtest.Plan{Allow: allow}.Check(t, "count of "+string(state), lines)
	}
}

func TestOrderOfListDependsOnNumberOfRows(t *testing.T) {
	d := openTest(t)
	text := func(f jobs.Filter) string {
		t.Helper()
		p, err := Part{Limit: f.Limit, Oldest: f.OldestFirst}, error(nil)
		if p.sorts, err = d.sorts(t.Context(), f); err != nil {
			t.Fatal(err)
		}
		return textOf(d, p, listIDs, f)
	}
	for _, states := range [][]jobs.State{{jobs.Pending}, {jobs.Running, jobs.Failed}, {jobs.Scheduled, jobs.Retrying},
		{jobs.Pending, jobs.Blocked}} {
		if text := text(jobs.Filter{States: states, Limit: 5}); !strings.Contains(text, "+tasks.id") {
			t.Errorf(`few tasks in states %v: got %s, want "+tasks.id"`, states, text)
		}
	}
	for _, states := range [][]jobs.State{nil, {jobs.Completed}, taskspec.Finished(), {jobs.Pending, jobs.Completed}} {
		if text := text(jobs.Filter{States: states, Limit: 5}); strings.Contains(text, "+tasks.id") {
			t.Errorf(`many tasks in states %v: got %s, want no "+tasks.id"`, states, text)
		}
	}
	if text := text(jobs.Filter{OldestFirst: true}); strings.Contains(text, "DESC") ||
		strings.Contains(text, "LIMIT") {
		t.Errorf("got %s, want neither DESC nor LIMIT", text)
	}
}

// textOf returns the text of a statement for a part.
func textOf(d *DB, p Part, template *statement, f jobs.Filter) string {
	return d.sql.Text(listOf(p, template, f))
}

// listOf returns the statement for a part without its arguments.
func listOf(p Part, template *statement, f jobs.Filter) *statement {
	s, _ := p.statement(template, f)
	return s
}

func TestListsByTimeReadIndex(t *testing.T) {
	d := openTest(t)
	at := time.Unix(9, 0)
	for name, c := range map[string]struct {
		states []jobs.State
		part   Part
		plan   statementtest.Plan
	}{
		"failed": {[]jobs.State{jobs.Failed}, Part{Sort: ByEnd},
			statementtest.Plan{Allow: []string{"SCAN tasks USING INDEX tasks_failed"}}},
		"failed, page two": {[]jobs.State{jobs.Failed}, Part{Sort: ByEnd, After: Mark{at, 3}},
			statementtest.Plan{By: []string{"INDEX tasks_failed (finished_at<?)"}}},
		"failed, part of a page": {[]jobs.State{jobs.Failed}, Part{Sort: ByEnd, After: Mark{at, 9}, end: Mark{at, 3}},
			statementtest.Plan{By: []string{"INDEX tasks_failed (finished_at>? AND finished_at<?)"}}},
		"completed": {[]jobs.State{jobs.Completed}, Part{Sort: ByEnd},
			statementtest.Plan{Allow: []string{"SCAN tasks USING INDEX tasks_finished"}}},
		"retrying": {[]jobs.State{jobs.Retrying}, Part{Sort: ByDue},
			statementtest.Plan{Allow: []string{"SCAN tasks USING INDEX tasks_due", "USE TEMP B-TREE FOR LAST TERM OF ORDER BY"}}},
		"due, page two": {nil, Part{Sort: ByDue, After: Mark{at, 3}},
			statementtest.Plan{By: []string{"INDEX tasks_due (run_at>?)"}, Allow: []string{"USE TEMP B-TREE FOR LAST TERM OF ORDER BY"}}},
	} {
		c.part.Limit = 51
		text := textOf(d, c.part, listTasks, jobs.Filter{States: c.states})
		c.plan.Check(t, name, statementtest.Explain(t, d.read, text))
	}
}
