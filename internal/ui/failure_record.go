package ui

// NewFailureGroup returns the record of a group of failed tasks that seem to have
// the same cause. try is a command that retries them.
func NewFailureGroup(g FailureGroup, try string) Record {
	return NewRecord("key", g.Key, "tasks", len(g.IDs), "first", Stamp(g.First), "last", Stamp(g.Last),
		"queues", g.Queues, "job", g.Job, "ending", g.Ending, "error_line", Known(g.Line), "ids", g.IDs, "try", try)
}
