package web

import (
	"context"
	"fmt"
	"strings"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/present"
	"example.com/runner/jobs"
)

// maxGrouped is the number of failed tasks that the page groups, the latest first.
const maxGrouped = 10_000

// groupView is a group of failed tasks with the same cause.
type groupView struct {
	present.FailureGroup
	Cause, In string
	Count     string
}

// failureGroups returns the groups of the failed tasks that a filter selects.
func (h *handler) failureGroups(ctx context.Context, filter jobs.Filter) ([]present.FailureGroup, error) {
	tasks, err := admin.Failures(ctx, h.r, filter, maxGrouped)
	if h.o.HideArgs {
		for i := range tasks {
			tasks[i].Error, tasks[i].ErrorLine = "", ""
		}
	}
	return present.GroupFailures(tasks), err
}

// groups sets the groups of a list of failed tasks.
func (h *handler) groups(ctx context.Context, v *tasksView, filter jobs.Filter) error {
	list, err := h.failureGroups(ctx, filter)
	for _, g := range list {
		cause := strings.Trim(g.Ending+" · "+g.Line, " ·")
		if g.Job != jobs.CommandJob {
			cause = g.Job + " · " + cause
		}
		v.Groups = append(v.Groups, groupView{g, humanize.Safe(truncate(cause, maxErrorText)), humanize.Safe(strings.Join(g.Queues, ", ")),
			humanize.Plural(len(g.IDs), "task")})
		v.Total += len(g.IDs)
	}
	return err
}

// groupIDs returns the tasks of the group that a form names.
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

// groupCLI returns the command line for the tasks of a group.
func (a *actionRequest) groupCLI(ids []int64) string {
	terms, filter := a.terms, a.filter
	defer func() { a.terms, a.filter = terms, filter }()
	a.terms, a.filter.IDs = nil, ids
	return a.cli()
}

// groupQuestion returns the question about the tasks of a group.
func (a *actionRequest) groupQuestion(verb string, n int) string {
	return fmt.Sprintf("%s these %s: %s?", verb, humanize.Plural(n, "task"), a.cause)
}
