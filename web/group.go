package web

import (
	"context"
	"slices"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/search"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
)

// groupView is a group of failed tasks with the same cause.
type groupView struct {
	ui.FailureGroup
	Cause, In   string
	Query, List string // search for the tasks of the group, and the URL of its list
	Latest      string // URL of the task that failed last
}

// readFailures returns the tasks of a filter that failed last.
func (h *handler) readFailures(ctx context.Context, filter jobs.Filter, limit int) ([]jobs.Task, error) {
	list, err := ui.Failures(ctx, h.r, filter, limit)
	return h.redactAll(list), err
}

// failureGroups returns the groups of the failed tasks that a filter selects.
func (h *handler) failureGroups(ctx context.Context, filter jobs.Filter) ([]ui.FailureGroup, error) {
	list, err := h.readFailures(ctx, filter, ui.MaxGrouped)
	return ui.GroupFailures(list), err
}

// causesOf is the maximum number of failures that the overview groups by cause.
// It groups the latest failures.
const causesOf = 500

// causes returns the most frequent cause of the latest failures of each queue.
func (h *handler) causes(ctx context.Context, since time.Time) (map[string]string, error) {
	failures, err := h.readFailures(ctx, jobs.Filter{Since: since}, causesOf)
	if err != nil {
		return nil, err
	}

	byQueue := map[string][]jobs.Task{}
	for _, f := range failures {
		byQueue[f.Queue] = append(byQueue[f.Queue], f)
	}

	causes := map[string]string{}
	for queue, list := range byQueue {
		largest := ui.GroupFailures(list)[0]
		words := "such as "
		if 2*len(largest.IDs) > len(list) {
			words = "most of them "
		}
		if len(largest.IDs) == len(list) {
			words = ""
		}
		causes[queue] = words + humanize.Safe(humanize.Cut(largest.Cause(), maxErrorText))
	}

	return causes, nil
}

// causeView selects the failed tasks that have the same cause as a task.
type causeView struct{ Key, Query, List string }

// cause returns a causeView of the tasks that failed with the same cause as t,
// or nil if t hasn't failed. origin is the search of the list from which the
// user came: its filters stay. Without it, the view selects all failed tasks of
// the job.
func (h *handler) cause(p page, t jobs.Task, origin string) *causeView {
	if t.State != jobs.Failed {
		return nil
	}

	terms, err := search.ParseTerms(origin)
	if terms = withoutCause(terms); err != nil || len(terms) == 0 {
		terms = []search.Term{
			{Key: search.KeyState, Value: string(jobs.Failed)},
			{Key: search.KeyJob, Value: t.Job},
		}
	}

	key := ui.GroupFailures([]jobs.Task{t})[0].Key
	terms = append(terms, search.Term{Key: search.KeyCause, Value: key})
	return &causeView{key, search.JoinTerms(terms), p.search(terms...)}
}

// AllGroups is the number of groups, also of those that aren't listed.
func (v *tasksView) AllGroups() int { return len(v.Groups) + v.MoreGroups }

// maxGroups is the number of groups that a page lists, the largest first.
const maxGroups = 100

// groups sets the groups of a list of failed tasks.
func (h *handler) groups(ctx context.Context, v *tasksView, q query) error {
	list, err := h.failureGroups(ctx, q.filter)
	for i, g := range list {
		v.Total += len(g.IDs)
		if i >= maxGroups {
			v.MoreGroups++
			continue
		}

		terms := append(slices.Clone(q.terms), search.Term{Key: search.KeyCause, Value: g.Key})
		v.Groups = append(v.Groups, groupView{g, humanize.Safe(humanize.Cut(g.Cause(), maxErrorText)),
			humanize.Safe(strings.Join(g.Queues, ", ")), search.JoinTerms(terms), v.search(terms...),
			v.taskLink(g.IDs[0], jobs.Failed, q.terms)})
	}

	v.Latest = v.Total >= ui.MaxGrouped
	return err
}
