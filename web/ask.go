package web

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"
)

// The code in this file makes sure that an action is neither lost nor done twice. If the session of a user has ended, the user signs in and
// then confirms the action. A second click on a button that would enqueue another task has no effect.

// askPath returns the path of the page that asks the user to confirm an action. The parameter "form" has the fields of the action. The
// result leaves out the fields that confirm the action.
func askPath(name string, form url.Values) string {
	q := url.Values{"action": {name}}
	for key, values := range form {
		if key != "confirmed" && key != "count" && key != "set" && key != "action" {
			q[key] = values
		}
	}
	return "/ask?" + q.Encode()
}

// ask is the handler of the page that asks the user to confirm an action. It changes nothing.
func (h *handler) ask(w http.ResponseWriter, req *http.Request) {
	ctx, cancel := readContext(req)
	defer cancel()
	form := req.URL.Query()
	name := form.Get("action")
	do := actions[name]
	if do == nil || h.o.ReadOnly {
		h.writeError(w, req, http.StatusNotFound, "This page does not exist.")
		return
	}
	form.Set("ask", "1")
	form.Del("confirmed")
	a := &actionRequest{h: h, name: name, form: form, now: time.Now().In(zone(req))}
	d, err := do(a, ctx)
	switch {
	case err != nil:
		h.fail(w, req, err)
	case d.ask == nil: // there is no question, because no task can be changed
		h.setFlash(w, d.line+"\n"+d.cli)
		http.Redirect(w, req, h.localPath(form.Get("back")), http.StatusSeeOther)
	default:
		d.ask.page = h.newPage(req, "Are you sure?", "")
		h.writePage(w, http.StatusOK, "confirm", d.ask)
	}
}

// question returns the question of an action on a queue or on a schedule, or nil if no question is needed. The question about a pause has a
// field for the reason.
func (a *actionRequest) question(verb, what, cli string) *confirmView {
	if a.confirmed || a.form.Get("ask") != "1" && !takesReason[a.name] {
		return nil
	}
	text := strings.ToUpper(verb[:1]) + verb[1:] + " " + what
	v := &confirmView{Action: a.name, Question: text + "?", Button: text, CLI: cli}
	v.Fields = []field{{"confirmed", "1"}, {"back", a.h.localPath(a.form.Get("back"))}}
	v.AskReason, v.Reason = takesReason[a.name], a.form.Get("reason")
	if a.name == "queue-pause" {
		v.Lengths, v.For = pauseLengths, a.form.Get("for")
	}
	for _, key := range []string{"queue", "name"} {
		if values, ok := a.form[key]; ok {
			v.Fields = append(v.Fields, field{key, values[0]})
		}
	}
	return v
}

// doubleClick is the time in which the same action counts as a second click on the same button.
const doubleClick = 2 * time.Second

// lastAction is the last action that doOnce has done, with its time and its result.
type lastAction struct {
	mu     sync.Mutex
	key    string
	at     time.Time
	result actionResult
}

// doOnce does an action with the function "do". If the same action was done less than doubleClick ago, it does nothing and returns the
// result of the earlier call.
func (l *lastAction) doOnce(ctx context.Context, key string, do func(context.Context) (actionResult, error)) (actionResult, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.key == key && time.Since(l.at) < doubleClick {
		return l.result, nil
	}
	d, err := do(ctx)
	if err == nil {
		l.key, l.at, l.result = key, time.Now(), d
	}
	return d, err
}
