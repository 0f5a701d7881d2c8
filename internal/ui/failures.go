package ui

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
)

// MaxGrouped is how many failed tasks the command line and the pages read to
// group them: those that failed last.
const MaxGrouped = 10_000

// Failures returns at most n failed tasks that a filter selects, the latest
// failure first.
func Failures(ctx context.Context, r *runner.Runner, filter jobs.Filter, n int) ([]jobs.Task, error) {
	filter.States = []jobs.State{jobs.Failed}
	tasks, _, err := db.Of(r).ListPart(ctx, filter, db.Part{Sort: db.ByEnd, Limit: n})
	return tasks, err
}

// ReadFailures groups the failed tasks that a filter selects, largest group
// first. It reads at most limit tasks: those that failed last.
func ReadFailures(ctx context.Context, r *runner.Runner, filter jobs.Filter, limit int) ([]FailureGroup, error) {
	tasks, err := Failures(ctx, r, filter, limit)
	return GroupFailures(tasks), err
}

// FailureIDs returns the ids of the tasks in the group with this key, or nil if
// there is no such group.
func FailureIDs(ctx context.Context, r *runner.Runner, filter jobs.Filter, key string) ([]int64, error) {
	groups, err := ReadFailures(ctx, r, filter, MaxGrouped)
	for _, g := range groups {
		if g.Key == key {
			return g.IDs, err
		}
	}
	return nil, err
}

// FailureGroup is a group of failed tasks that seem to have the same cause:
// their job, the way their attempts ended and their error lines are equal,
// apart from numbers, ids, e-mail addresses and paths.
type FailureGroup struct {
	Key         string // short hash that identifies the group
	Job, Ending string
	Line        string // error line of the latest failure; may contain control characters
	IDs         []int64
	Queues      []string
	First, Last time.Time
}

// Cause describes a group's cause in one line, which may have control
// characters.
func (g FailureGroup) Cause() string {
	cause := strings.Trim(g.Ending+" · "+g.Line, " ·")
	if g.Job != command.Job {
		cause = strings.Trim(g.Job+" · "+cause, " ·")
	}
	return cause
}

// varying matches the parts of an error line that may differ although the
// cause is the same: e-mail addresses, paths, ids and numbers.
//
// An id is a word of at least seven hexadecimal digits (as git shortens its
// hashes), or a word that mixes letters and digits. Quoted names stay: the name
// in `exec: "pg_dump": not found` is the cause.
var varying = humanize.Lazy(`[\w.+%-]+@[\w.-]+|(?:[\w.~-]*/)+[\w.@%+-]*|` +
	`\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b|\b(?:0x)?[0-9a-fA-F]{7,}\b|` +
	`\b\w*(?:[a-zA-Z]\w*[0-9]|[0-9]\w*[a-zA-Z])\w*\b|[0-9]+(?:[.:][0-9]+)*`)

// shortWord matches a word like v2 and i386, which is too short for an id:
// only their digits vary.
var shortWord = humanize.Lazy(`^[a-zA-Z_]\w{0,3}$`)

var digits = humanize.Lazy(`[0-9]+`)

// causeOf returns an error line with # in place of what varies.
func causeOf(line string) string {
	return varying().ReplaceAllStringFunc(line, func(part string) string {
		if shortWord().MatchString(part) {
			return digits().ReplaceAllString(part, "#")
		}
		return "#"
	})
}

// GroupFailures groups failed tasks by their cause, largest group first. The
// tasks must be sorted, latest failure first.
func GroupFailures(tasks []jobs.Task) []FailureGroup {
	at := map[string]int{} // index of a group by its cause
	var groups []FailureGroup
	for _, t := range tasks {
		line, ending := ErrorLine(t), Ending(t.Reason, t.ExitCode, t.Signal)
		cause := t.Job + "\x00" + ending + "\x00" + causeOf(line)
		i, ok := at[cause]
		if !ok {
			i = len(groups)
			at[cause] = i
			key := fmt.Sprintf("%x", sha256.Sum256([]byte(cause)))[:10]
			groups = append(groups, FailureGroup{Key: key, Job: t.Job, Ending: ending, Line: line, Last: t.FinishedAt})
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
