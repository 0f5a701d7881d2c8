package web

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/search"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// An action is an operation that the form of a page can start. The page shows the command line that does the same as the action.

// actionRequest is one request for an action.
type actionRequest struct {
	h         *handler
	name      string
	form      url.Values
	now       time.Time
	confirmed bool // whether the user has confirmed the action
	query          // selects the tasks that match the query, or the tasks with the selected ids
	byQuery   bool
	count     int // number of tasks in the question that the user has seen; -1 if the page asked no question
}

// actionResult is the result of an action: a line to show, or a question to ask first.
type actionResult struct {
	line string
	ask  *confirmView
	cli  string
}

type confirmView struct {
	page
	Action, Question, Button, CLI string
	Scope                         string // queues and times of the tasks of a group; empty for other questions
	Changed                       string // reason why the page asks the same question again; empty for a first question
	Fields                        []field
	For                           string // chosen length of a pause
	Lengths                       []length
	AskReason                     bool   // whether the question has a field for a reason
	Reason                        string // text in the field for the reason
}

type field struct{ Name, Value string }

// actions maps the name of an action in the URL to the method that does the action.
var actions = map[string]func(*actionRequest, context.Context) (actionResult, error){
	"retry": (*actionRequest).tasksAction, "cancel": (*actionRequest).tasksAction, "delete": (*actionRequest).tasksAction,
	"pause": (*actionRequest).tasksAction, "resume": (*actionRequest).tasksAction, "first": (*actionRequest).tasksAction,
	"queue-pause": (*actionRequest).queueAction, "queue-resume": (*actionRequest).queueAction,
	"schedule-run": (*actionRequest).scheduleAction, "schedule-pause": (*actionRequest).scheduleAction,
	"schedule-resume": (*actionRequest).scheduleAction,
}

// action returns the handler of a form. The handler responds with a question, or it redirects to the page of the form.
// That page then shows the result.
func (h *handler) action(do func(*actionRequest, context.Context) (actionResult, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		ctx, cancel := context.WithTimeout(req.Context(), actionTimeout)
		defer cancel()
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(actionTimeout + writeTimeout))
		if err := req.ParseForm(); err != nil {
			h.writeError(w, req, http.StatusBadRequest, "The form is too large or invalid.")
			return
		}
		a := &actionRequest{h: h, name: strings.TrimPrefix(req.URL.Path, "/actions/"), form: req.PostForm, now: time.Now().In(zone(req)),
			confirmed: req.PostForm.Get("confirmed") == "1"}
		d, err := do(a, ctx)
		h.counts.clear()
		back := h.localPath(req.PostForm.Get("back"))
		switch {
		case err != nil:
			h.fail(w, req, err)
		case d.ask != nil:
			status := http.StatusOK
			if d.ask.Changed != "" {
				status = http.StatusConflict
			}
			d.ask.page = h.newPage(req, "Are you sure?", "")
			h.writePage(w, status, "confirm", d.ask)
		default:
			h.logger.Info("action", "name", a.name, "did", d.line)
			h.setFlash(w, d.line+"\n"+d.cli)
			http.Redirect(w, req, back, http.StatusSeeOther)
		}
	}
}

// parse reads the selection of tasks from the form. The form has either ids, or a query. If the page has asked a question about the query,
// the form also has the number of tasks that the question named, and a key that identifies these tasks.
func (a *actionRequest) parse(ctx context.Context) error {
	a.count = -1
	for _, text := range a.form["id"] {
		id, err := strconv.ParseInt(text, 10, 64)
		if err != nil || id < 1 {
			return &jobs.FieldError{Field: "id", Msg: "invalid task id"}
		}
		if !slices.Contains(a.filter.IDs, id) {
			a.filter.IDs = append(a.filter.IDs, id)
		}
	}
	query := strings.TrimSpace(a.form.Get("query"))
	switch {
	case len(a.filter.IDs) > 0 && query != "":
		return &jobs.FieldError{Field: "query", Msg: "a request may have ids or a query, not both"}
	case len(a.filter.IDs) > 0:
		return nil
	case query == "":
		return &jobs.FieldError{Field: "id", Msg: "no task is selected"}
	}
	var err error
	a.byQuery = true
	if a.query, err = a.h.parse(ctx, query, a.now); err != nil {
		return err
	}
	if text := a.form.Get("count"); text != "" {
		if a.count, err = strconv.Atoi(text); err != nil || a.count < 0 {
			return &jobs.FieldError{Field: "count", Msg: "invalid number"}
		}
	}
	return nil
}

// tasksAction retries, cancels, deletes, pauses or resumes tasks, or moves them to the front. It first asks the user for a
// confirmation if needsConfirmation says so.
func (a *actionRequest) tasksAction(ctx context.Context) (actionResult, error) {
	if err := a.parse(ctx); err != nil {
		return actionResult{}, err
	}
	r, ids := a.h.r, a.filter.IDs
	d := actionResult{cli: a.cli()}
	if a.byQuery {
		ids = nil
		if filter, ok := a.only(search.Verb(a.name)); ok {
			var err error
			if ids, err = r.IDs(ctx, filter, runner.Page{}); err != nil {
				return actionResult{}, err
			}
		}
		if len(ids) == 0 {
			d.line = "none of these tasks can be " + pastTense[a.name]
			return d, nil
		}
		changed := ""
		if a.confirmed && a.count >= 0 {
			changed = a.changedText(ids)
		}
		if !a.confirmed || a.count < 0 || changed != "" {
			d.ask = a.confirmation(len(ids))
			d.ask.CLI, d.ask.Changed = d.cli, changed
			d.ask.Fields = append(d.ask.Fields, field{"set", a.h.asked.add(ids)})
			return d, nil
		}
	} else if ask, err := a.needsConfirmation(ctx, ids); err != nil || ask && !a.confirmed {
		d.ask = a.confirmation(len(ids))
		return d, err
	}
	var results []runner.ActionResult
	for part := range slices.Chunk(ids, 500) {
		some, err := a.apply(ctx, part)
		if err != nil {
			return actionResult{}, err
		}
		results = append(results, some...)
	}
	d.line = a.summary(results)
	return d, nil
}

// needsConfirmation reports whether the user must confirm the action first. The user must always confirm a deletion and
// the cancellation of a running task.
func (a *actionRequest) needsConfirmation(ctx context.Context, ids []int64) (bool, error) {
	switch {
	case a.name == string(search.VerbDelete) || a.form.Get("ask") == "1":
		return true, nil
	case a.name == string(search.VerbCancel):
		running, err := a.h.r.IDs(ctx, jobs.Filter{IDs: ids, States: []jobs.State{jobs.Running}}, runner.Page{Limit: 1})
		return len(running) > 0, err
	}
	return false, nil
}

func (a *actionRequest) apply(ctx context.Context, ids []int64) ([]runner.ActionResult, error) {
	switch search.Verb(a.name) {
	case search.VerbCancel:
		return a.h.r.Cancel(ctx, ids, runner.CancelOptions{Reason: a.form.Get("reason")})
	case search.VerbDelete:
		return a.h.r.Delete(ctx, ids)
	case search.VerbPause:
		return admin.PauseTasks(ctx, a.h.r, ids, a.form.Get("reason"))
	case search.VerbResume:
		return admin.ResumeTasks(ctx, a.h.r, ids)
	case search.VerbFirst:
		return admin.PutFirst(ctx, a.h.r, ids)
	}
	return a.h.r.Retry(ctx, ids, 0)
}

var pastTense = map[string]string{"retry": "retried", "cancel": "cancelled", "delete": "deleted", "pause": "paused", "resume": "resumed",
	"first": "moved to the front"}

// summary returns one line that counts the changed tasks and names the tasks that were not changed.
func (a *actionRequest) summary(results []runner.ActionResult) string {
	did, stopping := 0, 0
	var refused []string
	for _, m := range results {
		why := ""
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
		default:
			why = "it is " + string(m.State)
		}
		refused = append(refused, fmt.Sprintf("%d: %s", m.ID, why))
	}
	var parts []string
	if did > 0 || len(refused) == 0 && stopping == 0 {
		line := humanize.Plural(did, "task") + " " + pastTense[a.name]
		if a.name == string(search.VerbRetry) && did > 0 {
			line += ", to run again"
		}
		parts = append(parts, line)
	}
	if stopping > 0 {
		parts = append(parts, humanize.Does(stopping, "task", "is stopping", "are stopping"))
	}
	if len(refused) > 0 {
		const most = 3
		text := fmt.Sprintf("%s not %s (%s", humanize.Plural(len(refused), "task"), pastTense[a.name],
			strings.Join(refused[:min(most, len(refused))], "; "))
		if len(refused) > most {
			text += fmt.Sprintf("; and %d more", len(refused)-most)
		}
		parts = append(parts, text+")")
	}
	return strings.Join(parts, ", ")
}

// confirmation returns the question to ask before n tasks are changed.
func (a *actionRequest) confirmation(n int) *confirmView {
	verb := strings.ToUpper(a.name[:1]) + a.name[1:]
	v := &confirmView{Action: a.name, Button: fmt.Sprintf("%s %s", verb, humanize.Plural(n, "task")), CLI: a.cli(),
		Fields: []field{{"confirmed", "1"}, {"back", a.h.localPath(a.form.Get("back"))}}}
	v.Question = fmt.Sprintf("%s %s?", verb, humanize.Plural(n, "task"))
	switch {
	case a.byQuery:
		query := search.JoinTerms(a.terms)
		v.Question = fmt.Sprintf("%s all %s of %s?", verb, humanize.Plural(n, "task"), humanize.Safe(query))
		v.Fields = append(v.Fields, field{"query", query}, field{"count", strconv.Itoa(n)})
		if a.group != nil {
			v.Question, v.Scope = a.groupQuestion(verb, n), a.groupScope()
		}
	case n == 1:
		v.Question, v.Button = fmt.Sprintf("%s task %d?", verb, a.filter.IDs[0]), fmt.Sprintf("%s task %d", verb, a.filter.IDs[0])
	}
	if !a.byQuery {
		for _, id := range a.filter.IDs {
			v.Fields = append(v.Fields, field{"id", strconv.FormatInt(id, 10)})
		}
	}
	v.AskReason, v.Reason = takesReason[a.name], a.form.Get("reason")
	return v
}

// takesReason names the actions that can have a reason. The question about one of these actions has a field for the reason.
var takesReason = map[string]bool{"pause": true, "cancel": true, "queue-pause": true}

// cli returns the command line that does the same as the action.
func (a *actionRequest) cli() string {
	args := []string{a.name}
	if a.name == string(search.VerbFirst) {
		args = []string{"edit", "--first"}
	}
	const most = 20
	grouped := a.group != nil && a.name == string(search.VerbRetry) // only retry has --group, and with it no --state
	if ids := a.filter.IDs; !grouped {
		for i, id := range ids {
			if i == most {
				return humanize.Safe(shellLine(args...)) + " …"
			}
			args = append(args, strconv.FormatInt(id, 10))
		}
	}
	for _, t := range a.terms {
		switch {
		case grouped && t.Key != search.KeyState && t.Key != search.KeyID, !grouped && len(a.filter.IDs) == 0:
			args = append(args, t.Flag(), t.Value)
		}
	}
	if reason := a.form.Get("reason"); reason != "" && takesReason[a.name] {
		args = append(args, "--reason", reason)
	}
	return humanize.Safe(shellLine(args...))
}

// The next page shows the result of an action once. The text is in a cookie and not in the URL, because any site could
// make a link to a URL that contains a false text.
const (
	flashCookie = "runner-did"
	maxFlash    = 3000
)

func (h *handler) setFlash(w http.ResponseWriter, text string) {
	if len(text) > maxFlash {
		text = strings.ToValidUTF8(text[:maxFlash], "") + "…"
	}
	http.SetCookie(w, &http.Cookie{Name: flashCookie, Value: base64.RawURLEncoding.EncodeToString([]byte(text)), Path: h.base + "/",
		MaxAge: 30, HttpOnly: true, SameSite: http.SameSiteStrictMode})
}

// takeFlash returns the result of the last action and removes the cookie.
func (h *handler) takeFlash(w http.ResponseWriter, req *http.Request) string {
	cookie, err := req.Cookie(flashCookie)
	if err != nil {
		return ""
	}
	http.SetCookie(w, &http.Cookie{Name: flashCookie, Path: h.base + "/", MaxAge: -1, HttpOnly: true, SameSite: http.SameSiteStrictMode})
	text, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return ""
	}
	return humanize.SafeLines(string(text))
}
