package web

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/search"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
)

// query is a parsed search.
type query struct {
	terms  []search.Term
	filter jobs.Filter
	group  *ui.FailureGroup // that the term cause: names; nil without this term, or if the group is empty
}

// parse parses a search. It rejects a search for text if HideArgs is set,
// because the matches would reveal arguments.
func (h *handler) parse(ctx context.Context, text string, at time.Time) (q query, err error) {
	if q.terms, err = search.ParseTerms(text); err != nil {
		return q, err
	}

	q.filter, err = search.ParseFilter(withoutCause(q.terms), at, at.Location())
	if err == nil && q.filter.Match != "" && h.o.HideArgs {
		err = &jobs.FieldError{Field: "search", Msg: "a search for text is not possible, because arguments are hidden"}
	}

	i := slices.IndexFunc(q.terms, isCause)
	if err != nil || i < 0 {
		return q, err
	}

	groups, err := h.failureGroups(ctx, q.filter)
	q.filter.IDs = []int64{} // no task, unless one of the groups has the cause
	for _, g := range groups {
		if g.Key == q.terms[i].Value {
			q.filter.IDs, q.group = g.IDs, &g
		}
	}

	return q, err
}

func isCause(t search.Term) bool { return t.Key == search.KeyCause }

func withoutCause(terms []search.Term) []search.Term {
	return slices.DeleteFunc(slices.Clone(terms), isCause)
}

// causeText returns the cause of the group in the search, or an empty text.
func (q query) causeText() string {
	if q.group == nil {
		return ""
	}
	return humanize.Safe(humanize.Cut(q.group.Cause(), maxErrorText))
}

// restrict limits the search to tasks that the action can change, even if it
// names ids: the ids of a cause are no selection by hand.
func (q query) restrict(verb search.Verb) (jobs.Filter, bool) {
	ids := q.filter.IDs
	q.filter.IDs = nil
	f, ok := verb.Filter(q.filter)
	f.IDs = ids
	return f, ok
}

// idText matches a search for a task by its id. Quotes make it a search for the
// text, such as "503".
var idText = humanize.Lazy(`^(?:#|id:)?([0-9]{1,18})$`)

// idIn returns the id of the task that a search looks for, or 0.
func idIn(query string) int64 {
	found := idText().FindStringSubmatch(query)
	if found == nil {
		return 0
	}
	id, _ := strconv.ParseInt(found[1], 10, 64) // 18 digits fit
	return id
}

// jump opens the page of a task if a search is the id of the task. It passes
// all other requests on.
func (h *handler) jump(list http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		id := idIn(strings.TrimSpace(req.FormValue("q")))
		if id == 0 || strings.Contains(req.Header.Get("Accept"), fragment) { // an open list stays a list
			list(w, req)
			return
		}

		ctx, cancel := readContext(req)
		defer cancel()

		if _, err := h.r.Get(ctx, id); err != nil {
			list(w, req)
			return
		}

		http.Redirect(w, req, fmt.Sprintf("%s/tasks/%d", h.base, id), http.StatusSeeOther)
	}
}

const maxTerm = 60 // maximum length of a part of a search in its link, in bytes

// searchTerms returns the parts of a search, each with the URL of the search
// without it.
func (p page) searchTerms(terms []search.Term) (list []termLink) {
	for i, t := range terms {
		list = append(list, termLink{humanize.Cut(t.String(), maxTerm), p.search(slices.Concat(terms[:i], terms[i+1:])...)})
	}
	return list
}
