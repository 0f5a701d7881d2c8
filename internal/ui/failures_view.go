package ui

import (
	"strings"
	"time"

	"al.essio.dev/pkg/shellescape"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/search"
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
func failureSheet(filter jobs.Filter, now time.Time, wide bool) Sheet[FailureGroup] {
	return Sheet[FailureGroup]{
		Record: func(g FailureGroup) Record { return NewFailureGroup(g, RetryGroup(filter, g.Key)) },
		Line: func(g FailureGroup) []any {
			return []any{g.Key, len(g.IDs), Stamp(g.First), Stamp(g.Last), strings.Join(g.Queues, ","), g.Job, g.Ending, g.Line}
		},
		Table: Table{NoCut: wide, Columns: []Column{{Name: "KEY"}, {Name: "TASKS", AlignRight: true},
			{Name: "FIRST", AlignRight: true, DropOrder: 1}, {Name: "LAST", AlignRight: true, DropOrder: 4},
			{Name: "QUEUES", DropOrder: 2}, {Name: "JOB", DropOrder: 3}, {Name: "ENDING", DropOrder: 5}, {Name: "ERROR"}}},
		Cells: func(g FailureGroup) []string {
			return []string{g.Key, humanize.Count(int64(len(g.IDs))), humanize.Age(now.Sub(g.First)),
				humanize.Age(now.Sub(g.Last)), strings.Join(g.Queues, ","), g.Job, g.Ending, g.Line}
		},
	}
}

// NewFailureGroup returns the record of a group of failed tasks that seem to have
// the same cause. try is a command that retries them.
func NewFailureGroup(g FailureGroup, try string) Record {
	return NewRecord("key", g.Key, "tasks", len(g.IDs), "first", Stamp(g.First), "last", Stamp(g.Last),
		"queues", g.Queues, "job", g.Job, "ending", g.Ending, "error_line", Known(g.Line), "ids", g.IDs, "try", try)
}
