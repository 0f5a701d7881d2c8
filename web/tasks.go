package web

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/search"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
)

const (
	perPage      = 50
	maxCount     = 10_000                // the pages show a larger count as 10,000+
	countTimeout = 40 * time.Millisecond // time limit for counting the tasks of a query
)

type tasksView struct {
	page
	Query      string
	QueryError string // error in the query; the page then lists no tasks
	Terms      []termLink
	Cause      string // cause of the failed tasks that the list shows; empty if the search has no cause
	NoTask     string // id that the user has searched for, although there is no such task
	Tabs       []tab
	Groups     []groupView // groups of failed tasks, for a list in the order sortByCause
	MoreGroups int         // number of further groups, which are smaller
	Latest     bool        // whether Groups may contain only the latest failed tasks, because too many tasks failed
	Sorts      []tab       // orders that the list can have, if there is more than one
	order      string
	Rows       []taskRow
	Total      int    // number of tasks of the query; -1 if unknown
	AnyState   string // URL of the query without its states, shown if no task matches; empty if it has none
	Older      string
	Newest     string   // URL of the first page; empty on the first page
	Looked     int      // number of tasks at which the search has looked before it stopped
	Further    string   // URL where the search goes on; empty if it didn't stop
	Actions    []string // actions on all tasks of the query
	Can        []string // actions that can change at least one task of this page
}

// tab is a link that changes one choice of the page, such as the state of the
// tasks, and keeps the other choices.
type tab struct {
	Name, Link string
	N          string // number of tasks that the link lists; empty if the server has not counted them
	Selected   bool
}

// taskRow is a row of the task list.
type taskRow struct {
	jobs.Task
	AttemptText, Note, Error string
	Lasted                   time.Duration
	Ran                      bool
	When                     time.Time // when the task ended, or its next attempt is due, or it was created
	Due                      bool      // whether When is the time of the next attempt
	Can                      []string  // actions that can change the task
	Link                     string    // URL of the page of the task
}

// API returns the URL of the same search as JSON.
func (v *tasksView) API() string {
	link := v.Base + "/api/v1/tasks?q=" + escape(v.Query)
	if v.order == sortByEnd || v.order == sortByDue {
		link += "&sort=" + v.order
	}
	return link
}

func (h *handler) tasks(ctx context.Context, req *http.Request) (view, error) {
	query := strings.TrimSpace(req.FormValue("q"))
	v := &tasksView{page: h.newPage(req, "Tasks"), Query: humanize.Safe(query)}
	if v.Query != query {
		v.QueryError = "the search contains invisible characters"
		return v, nil
	}
	if query != "" {
		v.Title = query + " – tasks"
	}
	if id := idIn(query); id > 0 {
		v.NoTask = strconv.FormatInt(id, 10)
	}

	found, err := h.parse(ctx, query, v.Now)
	terms, filter := found.terms, found.filter
	v.Terms, v.Cause = v.searchTerms(terms), found.causeText()
	if err != nil {
		v.QueryError = humanize.Safe(err.Error())
		return v, nil
	}

	others := slices.DeleteFunc(slices.Clone(terms), func(t search.Term) bool { return t.Key == search.KeyState })
	if err := h.tabs(ctx, v, others, filter); err != nil {
		return nil, err
	}

	tasks, err := h.list(ctx, req, v, found)
	if err != nil {
		return nil, err
	}

	holds, err := ui.ReadHolds(ctx, h.r)
	if err != nil {
		return nil, err
	}

	for _, t := range tasks {
		row := h.taskRow(v.page, t, holds)
		row.Link = v.taskLink(t.ID, t.State, terms)
		v.Rows = append(v.Rows, row)
	}

	if len(tasks) == 0 && len(others) < len(terms) {
		v.AnyState = v.search(others...)
	}
	if v.Groups != nil {
		return v, nil
	}

	v.Total = len(tasks)
	switch {
	case v.Further != "":
		v.Total = -1 // the total is unknown, because the search has not looked at all tasks
	case v.Older != "" || v.Newest != "":
		v.Total = h.count(ctx, filter)
	}

	if query != "" { // else one click would act on all tasks
		v.Actions = verbs(func(verb search.Verb) bool {
			_, ok := found.restrict(verb)
			return ok && (len(filter.States) > 0 || verb != search.VerbDelete)
		})
	}

	v.Can = verbs(func(verb search.Verb) bool {
		return slices.ContainsFunc(v.Rows, func(row taskRow) bool { return slices.Contains(row.Can, string(verb)) })
	})
	return v, nil
}

// count returns the number of tasks of a filter on all pages. It returns -1 if
// counting takes too long.
func (h *handler) count(ctx context.Context, filter jobs.Filter) int {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	n, err := db.Of(h.r).CountUpTo(ctx, filter, maxCount+1)
	if err != nil {
		return -1
	}
	return n
}

// tabs adds a tab for each state, with the terms of the query that are not
// about states. It counts the tasks of a state only if an index supports the
// count and there are no such terms.
func (h *handler) tabs(ctx context.Context, v *tasksView, others []search.Term, filter jobs.Filter) error {
	for _, name := range []string{"all", "pending", "running", "retrying", "scheduled", "blocked", "failed",
		"completed", "cancelled"} {
		var states []jobs.State
		link := others
		if name != "all" {
			states = []jobs.State{jobs.State(name)}
			link = append([]search.Term{{Key: search.KeyState, Value: name}}, others...)
		}

		t := tab{Name: name, Link: v.search(link...), Selected: slices.Equal(states, filter.States)}
		isCounted := name != string(jobs.Completed) && name != string(jobs.Cancelled) && name != string(jobs.Blocked)
		if isCounted && len(others) == 0 {
			n, err := db.Of(h.r).CountUpTo(ctx, jobs.Filter{States: states}, maxCount+1)
			if err != nil {
				return err
			}

			t.N = v.UpTo(n)
		}

		v.Tabs = append(v.Tabs, t)
	}
	return nil
}

// verbs returns those of the actions on selected tasks that are possible.
func verbs(isPossible func(search.Verb) bool) (list []string) {
	for _, verb := range []search.Verb{search.VerbRetry, search.VerbCancel, search.VerbDelete} {
		if isPossible(verb) {
			list = append(list, string(verb))
		}
	}
	return list
}

func (h *handler) taskRow(p page, t jobs.Task, holds ui.Holds) taskRow {
	row := taskRow{Task: t, AttemptText: ui.Attempts(t), When: t.FinishedAt,
		Note: humanize.Safe(ui.Note(t, holds, p.Now)),
		Can:  verbs(func(verb search.Verb) bool { return canChange(verb, t.State) })}
	switch {
	case t.State == jobs.Scheduled || t.State == jobs.Retrying:
		row.When, row.Due, row.Note = t.RunAt, true, ""
	case row.When.IsZero():
		row.When = t.CreatedAt
	}

	if t.State == jobs.Running || t.State.Finished() {
		row.Lasted, row.Ran = ui.Lasted(t, p.Now)
	}
	if t.State == jobs.Failed || t.State == jobs.Retrying {
		row.Error = errorLine(t)
	}

	return row
}
