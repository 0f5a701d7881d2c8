package web

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/runner/db"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/search"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// selectedIDs returns the ids in the form, each once.
func (a *actionRequest) selectedIDs() (ids []int64, err error) {
	for _, text := range a.form["id"] {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id < 1 {
			return nil, &jobs.FieldError{Field: "id", Msg: "invalid task id"}
		}
		if !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

// tasks plans an action on the tasks of a search, or on those with the ids in
// the form.
func (a *actionRequest) tasks(ctx context.Context) (*plan, error) {
	ids, err := a.selectedIDs()
	query := strings.TrimSpace(a.form.Get("query"))
	switch {
	case err != nil:
		return nil, err
	case len(ids) > 0 && query != "":
		return nil, &jobs.FieldError{Field: "query", Msg: "a request may have ids or a query, not both"}
	case query != "":
		return a.searchedTasks(ctx, query)
	case len(ids) == 0:
		return nil, &jobs.FieldError{Field: "id", Msg: "no task is selected"}
	}

	p := a.planIDs(ids)
	for _, id := range ids {
		p.Fields = append(p.Fields, field{"id", strconv.FormatInt(id, 10)})
	}

	p.run = func(ctx context.Context) (string, error) { return a.changeAll(ctx, ids) }

	// The user must always confirm a deletion, and that a running task is
	// stopped.
	switch {
	case a.confirmed():
	case a.name == string(search.VerbDelete):
		p.ask = true
	case a.name == string(search.VerbCancel):
		running, err := db.Of(a.h.r).IDs(ctx, jobs.Filter{IDs: ids, States: []jobs.State{jobs.Running}, Limit: 1})
		p.ask = p.ask || len(running) > 0
		return p, err
	}

	return p, nil
}

// planIDs returns a plan for tasks with these ids. Its command line names the
// first of them.
func (a *actionRequest) planIDs(ids []int64) *plan {
	const limit = 20
	args := a.command()
	for _, id := range ids[:min(len(ids), limit)] {
		args = append(args, strconv.FormatInt(id, 10))
	}

	object := humanize.Plural(len(ids), "task")
	if len(ids) == 1 {
		object = fmt.Sprint("task ", ids[0])
	}

	p := a.newPlan(object, args...)
	if len(ids) > limit {
		p.CLI += " …"
	}

	return p
}

// command returns the words of the command that does the same as the action.
func (a *actionRequest) command() []string {
	if a.name == string(search.VerbFirst) {
		return []string{"edit", "--first"}
	}
	return []string{a.name}
}

// searchedTasks plans an action on all tasks of a search. The action changes
// only tasks that its question has named, because others may match meanwhile.
func (a *actionRequest) searchedTasks(ctx context.Context, text string) (*plan, error) {
	q, err := a.h.parse(ctx, text, a.now)
	if err != nil {
		return nil, err
	}

	var ids []int64
	if filter, ok := q.restrict(search.Verb(a.name)); ok {
		if ids, err = db.Of(a.h.r).IDs(ctx, filter); err != nil {
			return nil, err
		}
	}

	known := false
	if a.confirmed() {
		ids, known = a.h.limitToQuestion(a.form.Get("set"), ids)
	}

	p := a.planSearch(q, len(ids))
	p.run = func(ctx context.Context) (string, error) {
		if len(ids) == 0 {
			return "none of these tasks can be " + a.past, nil
		}
		return a.changeAll(ctx, ids)
	}
	if p.ask = !known && len(ids) > 0; !p.ask {
		return p, nil
	}
	if a.confirmed() {
		p.Changed = "Nothing was changed: this question is too old. Here it is again."
	}

	p.Fields = append(p.Fields, field{"query", search.JoinTerms(q.terms)}, field{"set", a.h.keepQuestion(ids)})
	return p, nil
}

// planSearch returns a plan for the n tasks of a search.
func (a *actionRequest) planSearch(q query, n int) *plan {
	tasks, grouped := humanize.Plural(n, "task"), q.group != nil
	isRetry := grouped && a.name == string(search.VerbRetry) // only retry has --group
	var p *plan
	if len(q.filter.IDs) > 0 && !isRetry {
		p = a.planIDs(q.filter.IDs)
	} else {
		args := a.command()
		for _, t := range q.terms {
			if !isRetry || t.Key != search.KeyState && t.Key != search.KeyID {
				args = append(args, t.Flag(), t.Value)
			}
		}
		p = a.newPlan(tasks, args...)
	}

	object := humanize.Safe(search.JoinTerms(q.terms))
	if grouped {
		object = q.causeText()
	}

	p.Button = strings.ToUpper(a.name[:1]) + a.name[1:] + " " + tasks
	p.Question = fmt.Sprintf("%s: %s?", p.Button, object)
	return p
}

// changeAll changes tasks and says what it did.
func (a *actionRequest) changeAll(ctx context.Context, ids []int64) (string, error) {
	var results []jobs.ActionResult
	for part := range slices.Chunk(ids, 500) {
		some, err := a.change(ctx, a.h.r, part, a.form.Get("reason"))
		if err != nil {
			return "", err
		}

		results = append(results, some...)
	}

	return a.summary(results), nil
}

func retry(ctx context.Context, r *runner.Runner, ids []int64, _ string) ([]jobs.ActionResult, error) {
	return r.Retry(ctx, ids, runner.RetryOptions{})
}

func cancel(ctx context.Context, r *runner.Runner, ids []int64, reason string) ([]jobs.ActionResult, error) {
	return r.Cancel(ctx, ids, runner.CancelOptions{Reason: reason})
}

func remove(ctx context.Context, r *runner.Runner, ids []int64, _ string) ([]jobs.ActionResult, error) {
	return r.Delete(ctx, ids)
}

func pause(ctx context.Context, r *runner.Runner, ids []int64, reason string) ([]jobs.ActionResult, error) {
	return r.Pause(ctx, ids, runner.PauseOptions{Reason: reason})
}

func resume(ctx context.Context, r *runner.Runner, ids []int64, _ string) ([]jobs.ActionResult, error) {
	return r.Resume(ctx, ids)
}

func putFirst(ctx context.Context, r *runner.Runner, ids []int64, _ string) ([]jobs.ActionResult, error) {
	return ui.PutFirst(ctx, r, ids)
}

// summary counts the changed tasks, and names those that were not changed.
func (a *actionRequest) summary(results []jobs.ActionResult) string {
	did, stopping := 0, 0
	var refused, parts []string
	for _, m := range results {
		why := "it is " + string(m.State)
		switch {
		case a.name == string(search.VerbCancel) && m.State == jobs.Running:
			stopping++
			continue
		case m.Done:
			did++
			continue
		case m.State == "":
			why = "there is no such task"
		case m.Taken:
			why = "its unique key belongs to another task"
		case m.NeededBy != 0:
			why = fmt.Sprintf("task %d needs its result", m.NeededBy)
		}

		refused = append(refused, fmt.Sprintf("%d: %s", m.ID, why))
	}

	if did > 0 {
		parts = append(parts, humanize.Plural(did, "task")+" "+a.past)
		if a.name == string(search.VerbRetry) {
			parts[0] += ", to run again"
		}
	}
	if stopping > 0 {
		parts = append(parts, humanize.Does(stopping, "task", "is stopping", "are stopping"))
	}
	if n := len(refused); n > 0 {
		const limit = 3
		text := fmt.Sprintf("%s not %s (%s", humanize.Plural(n, "task"), a.past, strings.Join(refused[:min(limit, n)], "; "))
		if n > limit {
			text += fmt.Sprintf("; and %d more", n-limit)
		}
		parts = append(parts, text+")")
	}

	return strings.Join(parts, ", ")
}
