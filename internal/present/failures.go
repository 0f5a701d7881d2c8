package present

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"
	"strings"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// MaxGrouped is the number of failed tasks that ReadFailures groups, the latest first.
const MaxGrouped = 10_000

// ReadFailures groups the failed tasks that a filter selects, up to the number in most. The largest group is first.
func ReadFailures(ctx context.Context, r *runner.Runner, filter jobs.Filter, most int) ([]FailureGroup, error) {
	tasks, err := admin.Failures(ctx, r, filter, most)
	return GroupFailures(tasks), err
}

// FailureIDs returns the tasks of the group with this key among the failed tasks that a filter selects. It returns nil if there is no such
// group.
func FailureIDs(ctx context.Context, r *runner.Runner, filter jobs.Filter, key string) ([]int64, error) {
	groups, err := ReadFailures(ctx, r, filter, MaxGrouped)
	for _, g := range groups {
		if g.Key == key {
			return g.IDs, err
		}
	}
	return nil, err
}

// FailureGroup is a group of failed tasks with the same cause: the job, the way in which the attempt ended, and the last error line, whose
// numbers, ids and paths do not count.
type FailureGroup struct {
	Key         string // text that identifies the cause
	Job, Ending string
	Line        string // error line of the latest failure; not safe for a terminal
	IDs         []int64
	Queues      []string
	First, Last time.Time
}

// Cause returns the cause of a group in one line. The text is not safe for a terminal.
func (g FailureGroup) Cause() string {
	cause := strings.Trim(g.Ending+" · "+g.Line, " ·")
	if g.Job != jobs.CommandJob {
		cause = strings.Trim(g.Job+" · "+cause, " ·")
	}
	return cause
}

// varying matches the parts of an error line that differ between failures with the same cause: paths, ids and numbers.
var varying = regexp.MustCompile(`(?:[\w.~-]*/)+[\w.@%+-]*|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b|` +
	`\b(?:0x)?[0-9a-fA-F]{8,}\b|[0-9]+(?:[.:][0-9]+)*`)

// Failure is what GroupFailures needs to know of a failed task.
type Failure struct {
	ID      int64
	Ended   time.Time
	Queue   string
	Job     string
	Ending  string // exit status, signal or reason
	Line    string // error line; not safe for a terminal
	pattern string // Line without the parts that vary
}

// NewFailure returns the failure of a failed task.
func NewFailure(t jobs.Task) Failure {
	line := ErrorLine(t)
	return Failure{t.ID, t.FinishedAt, t.Queue, t.Job, Ending(t.Reason, t.ExitCode, t.Signal), line, varying.ReplaceAllString(line, "#")}
}

// GroupFailures groups failed tasks by their cause. The largest group is first. The parameter tasks has the latest failure first.
func GroupFailures(tasks []jobs.Task) []FailureGroup {
	list := make([]Failure, len(tasks))
	for i, t := range tasks {
		list[i] = NewFailure(t)
	}
	return Group(list)
}

// Group is GroupFailures for failures that the caller has read before.
func Group(list []Failure) []FailureGroup {
	type cause struct{ job, ending, pattern string }
	at := map[cause]int{}
	var groups []FailureGroup
	for _, f := range list {
		key := cause{f.Job, f.Ending, f.pattern}
		i, ok := at[key]
		if !ok {
			sum := sha256.Sum256([]byte(strings.Join([]string{f.Job, f.Ending, f.pattern}, "\x00")))
			i = len(groups)
			at[key] = i
			groups = append(groups, FailureGroup{Key: hex.EncodeToString(sum[:5]), Job: f.Job, Ending: f.Ending, Line: f.Line,
				Last: f.Ended})
		}
		g := &groups[i]
		g.IDs, g.First = append(g.IDs, f.ID), f.Ended
		if !slices.Contains(g.Queues, f.Queue) {
			g.Queues = append(g.Queues, f.Queue)
		}
	}
	slices.SortStableFunc(groups, func(a, b FailureGroup) int { return len(b.IDs) - len(a.IDs) })
	return groups
}
