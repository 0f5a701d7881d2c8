package web

import (
	"context"
	"fmt"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/present"
	"example.com/runner/internal/search"
	"example.com/runner/jobs"
)

// groupView is a group of failed tasks with the same cause.
type groupView struct {
	present.FailureGroup
	Cause, In string
}

// failureGroups returns the groups of the failed tasks that a filter selects.
func (h *handler) failureGroups(ctx context.Context, filter jobs.Filter) ([]present.FailureGroup, error) {
	list, err := h.failures.read(ctx, h.r, filter, present.MaxGrouped, h.o.HideArgs)
	return present.Group(list), err
}

// causesOf is the maximum number of failures that the overview groups by cause. It groups the latest failures.
const causesOf = 500

// causes returns the most frequent cause of the latest failures of each queue.
func (h *handler) causes(ctx context.Context, since time.Time) (map[string]string, error) {
	if h.o.HideArgs {
		return nil, nil
	}
	failures, err := h.failures.read(ctx, h.r, jobs.Filter{Since: since}, causesOf, h.o.HideArgs)
	if err != nil {
		return nil, err
	}
	byQueue := map[string][]present.Failure{}
	for _, f := range failures {
		byQueue[f.Queue] = append(byQueue[f.Queue], f)
	}
	causes := map[string]string{}
	for queue, list := range byQueue {
		largest := present.Group(list)[0]
		words := "such as "
		if 2*len(largest.IDs) > len(list) {
			words = "most of them "
		}
		if len(largest.IDs) == len(list) {
			words = ""
		}
		causes[queue] = words + humanize.Safe(truncate(largest.Cause(), maxErrorText))
	}
	return causes, nil
}

// causeView selects the failed tasks that have the same cause as a task.
type causeView struct{ Query, Key string }

// cause returns a causeView of the tasks that failed with the same cause as t. It returns nil if t has not failed.
func (h *handler) cause(t jobs.Task) *causeView {
	if t.State != jobs.Failed {
		return nil
	}
	if h.o.HideArgs {
		t.Error, t.ErrorLine = "", ""
	}
	query := []search.Term{{Key: search.KeyState, Value: string(jobs.Failed)}, {Key: search.KeyJob, Value: t.Job}}
	return &causeView{search.JoinTerms(query), present.GroupFailures([]jobs.Task{t})[0].Key}
}

// groups sets the groups of a list of failed tasks.
func (h *handler) groups(ctx context.Context, v *tasksView, filter jobs.Filter) error {
	list, err := h.failureGroups(ctx, filter)
	for _, g := range list {
		v.Groups = append(v.Groups, groupView{g, humanize.Safe(truncate(g.Cause(), maxErrorText)),
			humanize.Safe(strings.Join(g.Queues, ", "))})
		v.Total += len(g.IDs)
	}
	v.Latest = v.Total >= present.MaxGrouped
	return err
}

// groupIDs returns the ids of the tasks of the group that the form names. It sets the field "cause" to the cause of this group.
func (a *actionRequest) groupIDs(ctx context.Context) ([]int64, error) {
	list, err := a.h.failureGroups(ctx, a.filter)
	if err != nil {
		return nil, err
	}
	for _, g := range list {
		if g.Key == a.form.Get("group") {
			a.cause = humanize.Safe(strings.Trim(g.Ending+" · "+truncate(g.Line, maxErrorText), " ·"))
			return g.IDs, nil
		}
	}
	return nil, nil
}

// groupQuestion returns the question about the tasks of a group.
func (a *actionRequest) groupQuestion(verb string, n int) string {
	tasks := "this task"
	if n != 1 {
		tasks = "these " + humanize.Plural(n, "task")
	}
	return fmt.Sprintf("%s %s: %s?", verb, tasks, a.cause)
}
