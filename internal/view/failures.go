package view

import (
	"strconv"
	"strings"
	"time"

	"al.essio.dev/pkg/shellescape"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/present"
	"example.com/runner/internal/record"
	"example.com/runner/internal/search"
	"example.com/runner/internal/term"
	"example.com/runner/jobs"
)

// RetryGroup returns a command that retries all tasks in a group. The filter selects the failed tasks that were grouped, and key is the key
// of the group.
func RetryGroup(f jobs.Filter, key string) string {
	words := []string{"runner", "retry"}
	f.States = nil
	if !f.FinishedBefore.IsZero() {
		f.Until = f.FinishedBefore.Add(-time.Millisecond)
	}
	for _, t := range search.TermsOf(f) {
		words = append(words, t.Flag(), t.Value)
	}
	return shellescape.QuoteCommand(append(words, "--group", key))
}

// FailureLine prints a group of failed tasks as a line with tabs, for other programs.
func FailureLine(p *term.Printer, g present.FailureGroup) {
	p.Fields(g.Key, strconv.Itoa(len(g.IDs)), record.Stamp(g.First).String(), record.Stamp(g.Last).String(), strings.Join(g.Queues, ","),
		g.Job, g.Ending, g.Line)
}

// FailureTable returns a table of the groups of failed tasks, for a terminal.
func FailureTable(groups []present.FailureGroup, now time.Time, wide bool) term.Table {
	t := term.Table{NoCut: wide, Columns: []term.Column{{Name: "KEY"}, {Name: "TASKS", AlignRight: true},
		{Name: "FIRST", AlignRight: true, DropOrder: 1}, {Name: "LAST", AlignRight: true, DropOrder: 4}, {Name: "QUEUES", DropOrder: 2},
		{Name: "JOB", DropOrder: 3}, {Name: "ENDING", DropOrder: 5}, {Name: "ERROR"}}}
	for _, g := range groups {
		t.Rows = append(t.Rows, []string{g.Key, humanize.Count(int64(len(g.IDs))), humanize.Age(now.Sub(g.First)),
			humanize.Age(now.Sub(g.Last)), strings.Join(g.Queues, ","), g.Job, g.Ending, g.Line})
	}
	return t
}
