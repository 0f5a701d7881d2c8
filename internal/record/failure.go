package record

import "example.com/runner/internal/present"

// FailureGroup is the JSON record of a group of failed tasks that seem to have the same cause.
type FailureGroup struct {
	Key       string   `json:"key"`
	Tasks     int      `json:"tasks"`
	First     Stamp    `json:"first"`
	Last      Stamp    `json:"last"`
	Queues    []string `json:"queues"`
	Job       string   `json:"job"`
	Ending    string   `json:"ending"`
	ErrorLine *string  `json:"error_line"`
	IDs       []int64  `json:"ids"`
	Try       string   `json:"try"`
}

// NewFailureGroup returns the record of a group. The parameter "try" is a command that retries the tasks of the group.
func NewFailureGroup(g present.FailureGroup, try string) FailureGroup {
	return FailureGroup{Key: g.Key, Tasks: len(g.IDs), First: Stamp(g.First), Last: Stamp(g.Last), Queues: g.Queues, Job: g.Job,
		Ending: g.Ending, ErrorLine: Known(g.Line), IDs: g.IDs, Try: try}
}
