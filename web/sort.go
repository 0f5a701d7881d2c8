package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/jobs"
)

// The orders of a task list, as the query of its URL names them.
const (
	sortByID  = "id"    // by id; the newest task comes first
	sortByEnd = "ended" // by the time of the end; the latest comes first
	sortByDue = "due"   // by due time; the earliest comes first

	sortByCause = "cause" // groups of failed tasks; the largest group comes first
)

// sortLink links to the same list in another order.
type sortLink struct {
	Order, Name, Link string
	Selected          bool
}

// sortOf returns the order of a list, and the orders that the list can have. Without an order in the URL, failed tasks are ordered by the
// time of their ends, and scheduled and retrying tasks by their due times.
func sortOf(asked string, states []jobs.State) (order string, orders []string) {
	all := func(of ...jobs.State) bool {
		return len(states) > 0 && !slices.ContainsFunc(states, func(s jobs.State) bool { return !slices.Contains(of, s) })
	}
	orders = []string{sortByID}
	order = sortByID
	switch {
	case all(jobs.Scheduled, jobs.Retrying):
		order, orders = sortByDue, []string{sortByDue, sortByID}
	case all(jobs.Finished()...):
		if orders = []string{sortByEnd, sortByID}; all(jobs.Failed) {
			order, orders = sortByEnd, []string{sortByEnd, sortByCause, sortByID}
		}
	}
	if slices.Contains(orders, asked) {
		order = asked
	}
	return order, orders
}

var sortNames = map[string]string{sortByID: "newest", sortByEnd: "ended last", sortByDue: "due next", sortByCause: "grouped by cause"}

// list reads the tasks of a page in its order. It sets the links to the other orders and pages.
func (h *handler) list(ctx context.Context, req *http.Request, v *tasksView, q query) (tasks []jobs.Task, err error) {
	filter := q.filter
	order, orders := sortOf(req.FormValue("sort"), filter.States)
	first := v.Base + "/tasks?q=" + escaped(v.Query)
	if len(orders) > 1 {
		for _, name := range orders {
			v.Sorts = append(v.Sorts, sortLink{name, sortNames[name], first + "&sort=" + name, name == order})
		}
	}
	if req.FormValue("sort") != "" {
		first += "&sort=" + order
	}
	if order == sortByCause {
		return nil, h.groups(ctx, v, q)
	}
	if v.Looked, err = lookOf(req.FormValue("look"), filter, order); err != nil {
		return nil, err
	}
	tasks, next, stopped, err := h.part(ctx, req, filter, order, perPage, v.Looked)
	switch {
	case err != nil:
		return nil, err
	case stopped:
		v.Further = first + "&" + next + "&look=" + strconv.Itoa(min(v.Looked*lookFurther, maxLook))
	case next != "":
		v.Older = first + "&" + next
	}
	if req.FormValue("from") != "" {
		v.Newest = first
	}
	return tasks, nil
}

// part returns one part of a list of the tasks that a filter selects: a page of the list, or a response of the API. The argument "limit" is
// the maximum number of tasks. The parameter "from" of the URL names the task before the part; without it the part is the first one. The
// result "next" is this parameter for the next part, or "" if there is none. The argument "look" is the maximum number of tasks that the
// search examines. The result "stopped" reports whether the search has stopped at this maximum.
func (h *handler) part(ctx context.Context, req *http.Request, filter jobs.Filter, order string, limit, look int) (tasks []jobs.Task,
	next string, stopped bool, err error) {
	p := admin.Part{Sort: sorts[order], Limit: limit + 1, Look: look}
	p.After, err = parseMark(order, req.FormValue("from"))
	if err != nil {
		return nil, "", false, err
	}
	tasks, rest, err := admin.Store(h.r).ListPart(ctx, filter, p)
	if rest.ID > 0 {
		next, stopped = partAfter(order, rest), true
	}
	if len(tasks) > limit {
		tasks = tasks[:limit]
		next = partAfter(order, markOf(tasks[limit-1], order))
	}
	return tasks, next, stopped, err
}

var sorts = map[string]admin.Sort{sortByID: admin.ByID, sortByEnd: admin.ByEnd, sortByDue: admin.ByDue}

// markOf returns the place of a task in a list.
func markOf(t jobs.Task, order string) admin.Mark {
	switch order {
	case sortByID:
		return admin.Mark{ID: t.ID}
	case sortByDue:
		return admin.Mark{At: t.RunAt, ID: t.ID}
	}
	return admin.Mark{At: t.FinishedAt, ID: t.ID}
}

// partAfter returns the parameter of the URL for the part after a task: the id,
// and before it the time if the list is sorted by time.
func partAfter(order string, m admin.Mark) string {
	if order == sortByID {
		return fmt.Sprintf("from=%d", m.ID)
	}
	return fmt.Sprintf("from=%d.%d", m.At.UnixMilli(), m.ID)
}

// parseMark parses what partAfter writes.
func parseMark(order, text string) (m admin.Mark, err error) {
	if text == "" {
		return m, nil
	}
	var ms int64
	if order == sortByID {
		_, err = fmt.Sscanf(text, "%d", &m.ID)
	} else {
		_, err = fmt.Sscanf(text, "%d.%d", &ms, &m.ID)
		m.At = time.UnixMilli(ms)
	}
	if err != nil || m.ID < 1 || partAfter(order, m) != "from="+text {
		return m, &jobs.FieldError{Field: "from", Msg: "invalid place in this list"}
	}
	return m, nil
}

// lookOf returns how many tasks a search examines at most: the number in the URL, or else a number that the database can examine in a few
// milliseconds. This number is smaller for a list that is sorted by time, because the database looks up each task separately. It is also
// smaller for a search for text or metadata, because the database parses JSON.
func lookOf(text string, f jobs.Filter, order string) (int, error) {
	switch {
	case text == "" && order == sortByID && f.Match == "" && len(f.Metadata) == 0:
		return lookPlain, nil
	case text == "":
		return lookTasks, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxLook {
		return 0, &jobs.FieldError{Field: "look", Msg: "invalid number of tasks"}
	}
	return n, nil
}
