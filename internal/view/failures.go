package view

import (
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

// failureSheet is the list of the groups of failed tasks. filter selects the
// tasks that were grouped.
func failureSheet(filter jobs.Filter, now time.Time, wide bool) term.Sheet[present.FailureGroup] {
	return term.Sheet[present.FailureGroup]{
		Record: func(g present.FailureGroup) term.Record { return record.NewFailureGroup(g, RetryGroup(filter, g.Key)) },
		Line: func(g present.FailureGroup) []any {
			return []any{g.Key, len(g.IDs), term.Stamp(g.First), term.Stamp(g.Last), strings.Join(g.Queues, ","), g.Job, g.Ending, g.Line}
		},
		Table: term.Table{NoCut: wide, Columns: []term.Column{{Name: "KEY"}, {Name: "TASKS", AlignRight: true},
			{Name: "FIRST", AlignRight: true, DropOrder: 1}, {Name: "LAST", AlignRight: true, DropOrder: 4},
			{Name: "QUEUES", DropOrder: 2}, {Name: "JOB", DropOrder: 3}, {Name: "ENDING", DropOrder: 5}, {Name: "ERROR"}}},
		Cells: func(g present.FailureGroup) []string {
			return []string{g.Key, humanize.Count(int64(len(g.IDs))), humanize.Age(now.Sub(g.First)),
				humanize.Age(now.Sub(g.Last)), strings.Join(g.Queues, ","), g.Job, g.Ending, g.Line}
		},
	}
}
