package web

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
)

// Version 1 of the read API responds with tasks as JSON or CSV.
// docs/dashboard.md describes it. A new version of runner may add keys and
// columns, but it does not rename or remove them.

const (
	apiLimit    = 100 // default number of tasks in a response
	apiMaxLimit = 1000
)

var apiParameters = []string{"q", "sort", "limit", "from", "format"}

// apiKeys are the keys of a task in a list, in this order. Their values are
// those of --json.
var apiKeys = []string{"id", "state", "reason", "job", "label", "queue", "priority", "lane", "schedule", "batch", "worker", "attempt",
	"max_attempts", "created_at", "run_at", "started_at", "finished_at", "duration", "exit_code", "signal", "error", "args", "error_line"}

// apiTasks is the response to a search.
type apiTasks struct {
	Tasks []ui.Record `json:"tasks"`
	Next  *string     `json:"next"` // URL of the next page of the list; null on the last page
}

// apiList responds with the tasks of a search.
func (h *handler) apiList(w http.ResponseWriter, req *http.Request) {
	ctx, cancel := readContext(req)
	defer cancel()

	list, err := h.apiSearch(ctx, req)
	if err != nil {
		h.fail(w, req, err)
		return
	}
	if req.FormValue("format") == "csv" {
		writeCSV(w, req, list)
		return
	}

	writeJSON(w, req, http.StatusOK, list)
}

func (h *handler) apiSearch(ctx context.Context, req *http.Request) (apiTasks, error) {
	for key := range req.URL.Query() {
		if !slices.Contains(apiParameters, key) {
			return apiTasks{}, &jobs.FieldError{Field: key, Msg: "unknown parameter; use " + strings.Join(apiParameters, ", ")}
		}
	}

	if format := req.FormValue("format"); format != "" && format != "json" && format != "csv" {
		return apiTasks{}, &jobs.FieldError{Field: "format", Msg: "unknown format; use json or csv"}
	}

	q, err := h.parse(ctx, strings.TrimSpace(req.FormValue("q")), time.Now())
	filter := q.filter
	if err != nil {
		return apiTasks{}, err
	}

	order, err := apiOrder(req, filter)
	if err != nil {
		return apiTasks{}, err
	}

	limit := apiLimit
	if text := req.FormValue("limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > apiMaxLimit {
			return apiTasks{}, &jobs.FieldError{Field: "limit", Msg: "invalid number of tasks; use 1 to 1000"}
		}
	}

	p, err := h.part(ctx, filter, order, req.FormValue("from"), limit)
	if err != nil {
		return apiTasks{}, err
	}

	list := apiTasks{Tasks: []ui.Record{}}
	if p.next != "" {
		query := req.URL.Query()
		query.Set("from", p.next)
		list.Next = ui.Known(h.base + req.URL.Path + "?" + query.Encode())
	}

	for _, t := range p.tasks {
		list.Tasks = append(list.Tasks, ui.NewTask(t, time.Now()).Pick(apiKeys...))
	}

	return list, nil
}

// apiOrder returns the order of the tasks of a response. It returns an error if
// the tasks of this search cannot have the requested order.
func apiOrder(req *http.Request, filter jobs.Filter) (string, error) {
	choice := cmp.Or(req.FormValue("sort"), sortByID)
	order, _ := sortOf(choice, filter.States)
	if order != choice || order == sortByCause {
		return "", &jobs.FieldError{Field: "sort",
			Msg: "invalid order; use id, or ended for a search of finished tasks, or due for state:scheduled,retrying"}
	}
	return order, nil
}

// apiGet responds with one task: with all keys that the command line prints.
func (h *handler) apiGet(w http.ResponseWriter, req *http.Request) {
	ctx, cancel := readContext(req)
	defer cancel()

	t, err := h.getTask(ctx, req)
	if err != nil {
		h.fail(w, req, err)
		return
	}
	writeJSON(w, req, http.StatusOK, ui.NewTask(t, time.Now()))
}

// apiOther responds with an error to a request that is not part of the API.
func (h *handler) apiOther(w http.ResponseWriter, req *http.Request) {
	if req.Method != http.MethodGet && req.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		h.writeError(w, req, http.StatusMethodNotAllowed, "the API only reads; use GET")
		return
	}
	h.writeError(w, req, http.StatusNotFound, "unknown path; use /api/v1/tasks or /api/v1/tasks/ID")
}

// apiProblem is the body of a response with an error.
type apiProblem struct {
	Error string `json:"error"`
}

func writeJSON(w http.ResponseWriter, req *http.Request, status int, value any) {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(value) // every value of the API has a JSON form
	send(w, req, status, "application/json", text.String())
}

// writeCSV responds with a line of column names and a line for each task. An
// unknown value is empty. The header Link has the URL of the tasks that follow.
func writeCSV(w http.ResponseWriter, req *http.Request, list apiTasks) {
	if list.Next != nil {
		w.Header().Set("Link", "<"+*list.Next+`>; rel="next"`)
	}

	var text strings.Builder
	out := csv.NewWriter(&text)
	_ = out.Write(apiKeys)
	for _, task := range list.Tasks {
		line := make([]string, len(task))
		for i, m := range task {
			line[i] = escapeFormula(ui.Text(m.Value))
		}
		_ = out.Write(line)
	}

	out.Flush()
	send(w, req, http.StatusOK, "text/csv; charset=utf-8", text.String())
}

// escapeFormula puts an apostrophe before a text that a spreadsheet would run
// as a formula: people open the CSV there, and a label or an error line may
// come from anybody. A negative number keeps its sign.
func escapeFormula(text string) string {
	if text == "" || !strings.ContainsRune("=+-@\t\r", rune(text[0])) {
		return text
	}
	if _, err := strconv.ParseFloat(text, 64); err == nil && text[0] == '-' {
		return text
	}
	return "'" + text
}
