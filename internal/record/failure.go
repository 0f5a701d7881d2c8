package record

import (
	"example.com/runner/internal/present"
	"example.com/runner/internal/term"
)

// NewFailureGroup returns the record of a group of failed tasks that seem to have
// the same cause. try is a command that retries them.
func NewFailureGroup(g present.FailureGroup, try string) term.Record {
	return term.NewRecord("key", g.Key, "tasks", len(g.IDs), "first", term.Stamp(g.First), "last", term.Stamp(g.Last),
		"queues", g.Queues, "job", g.Job, "ending", g.Ending, "error_line", term.Known(g.Line), "ids", g.IDs, "try", try)
}
