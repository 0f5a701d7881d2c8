package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
)

// The orders of a task list, as the query of its URL names them.
const (
	sortByID  = "id"    // by id; the newest task comes first
	sortByEnd = "ended" // by the time of the end; the latest comes first
	sortByDue = "due"   // by due time; the earliest comes first

	sortByCause = "cause" // groups of failed tasks; the largest group comes first
)

// sortOf returns the order of a list, and the orders that the list can have.
// Without an order in the URL, failed tasks are ordered by the time of their
// ends, and scheduled and retrying tasks by their due times.
func sortOf(choice string, states []jobs.State) (order string, orders []string) {
	all := func(of ...jobs.State) bool {
		isOther := func(s jobs.State) bool { return !slices.Contains(of, s) }
		return len(states) > 0 && !slices.ContainsFunc(states, isOther)
	}
	orders = []string{sortByID}
	order = sortByID
	switch {
	case all(jobs.Scheduled, jobs.Retrying):
		order, orders = sortByDue, []string{sortByDue, sortByID}
	case all(taskspec.Finished()...):
		if orders = []string{sortByEnd, sortByID}; all(jobs.Failed) {
			order, orders = sortByEnd, []string{sortByEnd, sortByCause, sortByID}
		}
	}

	if slices.Contains(orders, choice) {
		order = choice
	}

	return order, orders
}

var sortNames = map[string]string{
	sortByID:    "newest",
	sortByEnd:   "ended last",
	sortByDue:   "due next",
	sortByCause: "grouped by cause",
}

// list reads the tasks of a page in its order. It sets the links to the other
// orders and pages.
func (h *handler) list(ctx context.Context, req *http.Request, v *tasksView, q query) (tasks []jobs.Task, err error) {
	filter := q.filter
	order, orders := sortOf(req.FormValue("sort"), filter.States)
	first := v.Base + "/tasks?q=" + escape(v.Query)
	if len(orders) > 1 {
		for _, name := range orders {
			v.Sorts = append(v.Sorts, tab{Name: sortNames[name], Link: first + "&sort=" + name, Selected: name == order})
		}
	}
	if v.order = order; req.FormValue("sort") != "" {
		first += "&sort=" + order
	}
	if order == sortByCause {
		return nil, h.groups(ctx, v, q)
	}

	p, err := h.part(ctx, filter, order, req.FormValue("from"), perPage)
	v.Looked = p.looked
	switch next := first + "&from=" + p.next; {
	case p.looked > 0:
		v.Further = next
	case p.next != "":
		v.Older = next
	}

	if req.FormValue("from") != "" {
		v.Newest = first
	}

	return p.tasks, err
}

// part is a page of a list of tasks, or a response of the API.
type part struct {
	tasks  []jobs.Task
	next   string // parameter from of the URL for the next part; empty on the last one
	looked int    // number of tasks at which the search has looked before it stopped; 0 if it didn't stop
}

// part reads at most limit tasks after the place in from.
func (h *handler) part(ctx context.Context, filter jobs.Filter, order, from string, limit int) (p part, err error) {
	after, err := parseMark(order, from)
	if err != nil {
		return p, err
	}

	look := lookAt(filter, order, from)
	var rest db.Mark
	p.tasks, rest, err = db.Of(h.r).ListPart(ctx, filter,
		db.Part{Sort: sorts[order], After: after, Limit: limit + 1, Look: look})
	h.redactAll(p.tasks)
	switch {
	case rest.ID > 0:
		p.next, p.looked = markText(order, rest), look
	case len(p.tasks) > limit:
		p.tasks = p.tasks[:limit]
		p.next = markText(order, markOf(p.tasks[limit-1], order))
	}

	return p, err
}

var sorts = map[string]db.Sort{sortByID: db.ByID, sortByEnd: db.ByEnd, sortByDue: db.ByDue}

// markOf returns the place of a task in a list.
func markOf(t jobs.Task, order string) db.Mark {
	switch order {
	case sortByID:
		return db.Mark{ID: t.ID}
	case sortByDue:
		return db.Mark{At: t.RunAt, ID: t.ID}
	}
	return db.Mark{At: t.FinishedAt, ID: t.ID}
}

// markText returns a place for a URL: the id, and before it the time if the
// list is sorted by time.
func markText(order string, m db.Mark) string {
	if order == sortByID {
		return fmt.Sprint(m.ID)
	}
	return fmt.Sprintf("%d.%d", m.At.UnixMilli(), m.ID)
}

// parseMark parses what markText writes.
func parseMark(order, text string) (m db.Mark, err error) {
	if text == "" {
		return m, nil
	}

	id := text
	if order != sortByID {
		var ms int64
		_, err = fmt.Sscanf(text, "%d.%s", &ms, &id)
		m.At = time.UnixMilli(ms)
	}
	if err == nil {
		m.ID, err = strconv.ParseInt(id, 10, 64)
	}
	if err != nil || m.ID < 1 || markText(order, m) != text {
		return m, &jobs.FieldError{Field: "from", Msg: "invalid place in this list"}
	}

	return m, nil
}

// A search without an index looks at a limited number of tasks, which the
// database reads in a few milliseconds. It reads the tasks of a list by id
// faster than those of a list by time, and parses JSON only for a search for
// text or metadata. They are variables so that tests need few tasks.
var (
	lookTasks = 15_000
	lookPlain = 100_000 // by id, without text and metadata
)

// lookFurther is how many times as many tasks a search looks at when it goes
// on.
const lookFurther = 10

// lookAt returns how many tasks a part of a search looks at.
func lookAt(f jobs.Filter, order, from string) int {
	look := lookTasks
	if order == sortByID && f.Match == "" && len(f.Metadata) == 0 {
		look = lookPlain
	}
	if from != "" {
		look *= lookFurther
	}
	return look
}
