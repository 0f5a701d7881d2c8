package ui

import (
	"strings"
	"time"

	"al.essio.dev/pkg/shellescape"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/search"
	"example.com/runner/jobs"
)

// RetryGroup returns a command that retries the group with this key. The filter
// selects the failed tasks that were grouped.
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

// failureSheet lists groups of failed tasks. filter selects the tasks that were
// grouped.
func failureSheet(filter jobs.Filter, now time.Time, wide bool) Sheet[FailureGroup] {
	return Sheet[FailureGroup]{
		Row:   func(g FailureGroup) Record { return NewFailureGroup(g, RetryGroup(filter, g.Key), now) },
		Line:  []string{"key", "tasks", "first", "last", "QUEUES", "job", "ending", "error_line"},
		NoCut: wide,
	}
}

// NewFailureGroup returns a group's record. try is a command that retries its
// tasks.
func NewFailureGroup(g FailureGroup, try string, now time.Time) Record {
	tasks := len(g.IDs)
	return NewRecord(
		Member{Key: "key", Value: g.Key, Name: "KEY"},
		Member{Key: "tasks", Value: tasks, Name: "TASKS", Text: humanize.Count(int64(tasks)), Right: true},
		Member{Key: "first", Value: Stamp(g.First), Name: "FIRST", Text: humanize.Age(now.Sub(g.First)),
			Right: true, Drop: 1},
		Member{Key: "last", Value: Stamp(g.Last), Name: "LAST", Text: humanize.Age(now.Sub(g.Last)), Right: true, Drop: 4},
		"queues", g.Queues,
		Member{Name: "QUEUES", Value: strings.Join(g.Queues, ","), Drop: 2},
		Member{Key: "job", Value: g.Job, Name: "JOB", Drop: 3},
		Member{Key: "ending", Value: g.Ending, Name: "ENDING", Drop: 5},
		Member{Key: "error_line", Value: Known(g.Line), Name: "ERROR"},
		"ids", g.IDs, "try", try)
}
