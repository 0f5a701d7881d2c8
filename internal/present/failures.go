package present

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"time"

	"example.com/runner/jobs"
)

// FailureGroup is a group of failed tasks with the same cause: the job, the way in which the attempt ended, and the last error line, whose
// numbers, ids and paths do not count.
type FailureGroup struct {
	Key         string // identifies the cause
	Job, Ending string
	Line        string // error line of the latest failure; not safe for a terminal
	IDs         []int64
	Queues      []string
	First, Last time.Time
}

// varying matches the parts of an error line that differ between failures with the same cause: paths, ids and numbers.
var varying = regexp.MustCompile(`(?:[\w.~-]*/)+[\w.@%+-]*|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b|` +
	`\b(?:0x)?[0-9a-fA-F]{8,}\b|[0-9]+(?:[.:][0-9]+)*`)

// GroupFailures groups failed tasks by their cause. The largest group is first. The parameter tasks has the latest failure first.
func GroupFailures(tasks []jobs.Task) []FailureGroup {
	at := map[string]int{}
	var groups []FailureGroup
	for _, t := range tasks {
		ending, line := Ending(t.Reason, t.ExitCode, t.Signal), ErrorLine(t)
		cause := strings.Join([]string{t.Job, ending, varying.ReplaceAllString(line, "#")}, "\x00")
		i, ok := at[cause]
		if !ok {
			sum := sha256.Sum256([]byte(cause))
			i = len(groups)
			at[cause] = i
			groups = append(groups, FailureGroup{Key: hex.EncodeToString(sum[:8]), Job: t.Job, Ending: ending, Line: line,
				Last: t.FinishedAt})
		}
		g := &groups[i]
		g.IDs, g.First = append(g.IDs, t.ID), t.FinishedAt
		if !slices.Contains(g.Queues, t.Queue) {
			g.Queues = append(g.Queues, t.Queue)
		}
	}
	slices.SortStableFunc(groups, func(a, b FailureGroup) int { return len(b.IDs) - len(a.IDs) })
	return groups
}
