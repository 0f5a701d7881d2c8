package web

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"al.essio.dev/pkg/shellescape"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// An action is what the form of a button does. Some actions ask a question
// first. The page shows the command line that does the same.

// actionRequest is the form of an action.
type actionRequest struct {
	h *handler
	action
	name string
	form url.Values
	now  time.Time
}

// plan is an action that can be done now, or after its question.
type plan struct {
	page
	Action, Question, Button, CLI string

	Changed   string // why the page asks again; empty for a first question
	Fields    []field
	For       string // chosen length of a pause
	Lengths   []field
	AskReason bool   // whether the question has a field for a reason
	Reason    string // text in the field for the reason

	ask bool // whether the user must answer the question first
	run func(context.Context) (did string, err error)
}

type field struct{ Name, Value string }

// action is what the form of a button does. change and past ("2 tasks retried")
// are for tasks.
type action struct {
	plan        func(*actionRequest, context.Context) (*plan, error)
	takesReason bool
	past        string
	change      func(ctx context.Context, r *runner.Runner, ids []int64, reason string) ([]jobs.ActionResult, error)
}

var actions = map[string]action{
	"retry":           {(*actionRequest).tasks, false, "retried", retry},
	"cancel":          {(*actionRequest).tasks, true, "cancelled", cancel},
	"delete":          {(*actionRequest).tasks, false, "deleted", remove},
	"pause":           {(*actionRequest).tasks, true, "paused", pause},
	"resume":          {(*actionRequest).tasks, false, "resumed", resume},
	"first":           {(*actionRequest).tasks, false, "moved to the front", putFirst},
	"queue-pause":     {plan: (*actionRequest).queue, takesReason: true},
	"queue-resume":    {plan: (*actionRequest).queue},
	"schedule-run":    {plan: (*actionRequest).schedule},
	"schedule-pause":  {plan: (*actionRequest).schedule},
	"schedule-resume": {plan: (*actionRequest).schedule},
}

// action responds to the form of an action with a question, or does the action
// and returns to the page of the form, which then shows what was done.
func (h *handler) action(w http.ResponseWriter, req *http.Request) {
	ctx, cancel := context.WithTimeout(req.Context(), actionTimeout)
	defer cancel()

	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(actionTimeout + writeTimeout))
	if err := req.ParseForm(); err != nil {
		h.writeError(w, req, http.StatusBadRequest, "The form is too large or invalid.")
		return
	}

	name := req.PathValue("name")
	a := &actionRequest{h: h, action: actions[name], name: name, form: req.PostForm, now: time.Now().In(zone(req))}
	if a.plan == nil {
		h.writeError(w, req, http.StatusNotFound, "This page does not exist.")
		return
	}

	p, err := a.plan(a, ctx)
	if err == nil && p.ask {
		status := http.StatusOK
		if p.Changed != "" {
			status = http.StatusConflict
		}
		p.page = h.newPage(req, "Are you sure?")
		h.render(w, req, status, "confirm", p)
		return
	}

	did := ""
	if err == nil {
		did, err = p.run(ctx)
		h.counts.clear()
	}
	if err != nil {
		h.fail(w, req, err)
		return
	}

	h.logger.Info("action", "name", name, "did", did)
	h.setFlash(w, did+"\n"+p.CLI, 30)
	http.Redirect(w, req, h.localPath(a.form.Get("back")), http.StatusSeeOther)
}

// newPlan returns a plan for an object, such as "task 7", with the command line
// that does the same.
func (a *actionRequest) newPlan(object string, args ...string) *plan {
	reason := a.form.Get("reason")
	if reason != "" && a.takesReason {
		args = append(args, "--reason", reason)
	}

	verb := a.name[strings.IndexByte(a.name, '-')+1:]
	text := strings.ToUpper(verb[:1]) + verb[1:] + " " + object
	return &plan{
		Action:    a.name,
		Question:  text + "?",
		Button:    text,
		CLI:       humanize.Safe(shellLine(args...)),
		Fields:    []field{{"confirmed", "1"}, {"back", a.h.localPath(a.form.Get("back"))}},
		AskReason: a.takesReason,
		Reason:    reason,
		ask:       !a.confirmed() && a.form.Get("ask") == "1",
	}
}

func (a *actionRequest) confirmed() bool { return a.form.Get("confirmed") == "1" }

// pauseLengths are how long a pause may last; an empty value has no end.
var pauseLengths = []field{
	{"until it is resumed", ""},
	{"for 15 minutes", "15m"},
	{"for 1 hour", "1h"},
	{"for 8 hours", "8h"},
	{"for 1 day", "24h"},
}

// queue plans to pause or resume a queue. An empty name means all queues.
func (a *actionRequest) queue(context.Context) (*plan, error) {
	if a.form["queue"] == nil {
		return nil, &jobs.FieldError{Field: "queue", Msg: "is missing"}
	}

	queue, reason, until := cmp.Or(a.form.Get("queue"), admin.AllQueues), a.form.Get("reason"), a.form.Get("for")
	object, to := queue, []string{"-q", queue}
	if queue == admin.AllQueues {
		object, to = "all queues", []string{"--all"}
	}

	if a.name == "queue-resume" {
		p := a.newPlan(object, append([]string{"resume"}, to...)...)
		p.Fields = append(p.Fields, field{"queue", queue})
		p.run = func(ctx context.Context) (string, error) {
			return object + " resumed", admin.ResumeQueues(ctx, a.h.r, queue)
		}
		return p, nil
	}

	lasts, err := time.ParseDuration(cmp.Or(until, "0s"))
	switch {
	case err != nil || lasts < 0 || lasts == 0 && until != "":
		return nil, &jobs.FieldError{Field: "for", Msg: "is no length of a pause; use 1h or 30m"}
	case len(reason) > taskspec.MaxError:
		return nil, &jobs.FieldError{Field: "reason", Msg: "is too long"}
	case lasts > 0:
		to = append(to, "--for", until)
	}

	p := a.newPlan(object, append([]string{"pause"}, to...)...)
	p.Fields = append(p.Fields, field{"queue", queue})
	p.Lengths, p.For, p.ask = pauseLengths, until, !a.confirmed()
	p.run = func(ctx context.Context) (string, error) {
		did := object + " paused: running tasks continue, no other task starts"
		if lasts > 0 {
			return did, admin.PauseQueues(ctx, a.h.r, []string{queue}, admin.PauseOptions{For: lasts, Reason: reason})
		}
		return did, admin.PauseQueues(ctx, a.h.r, []string{queue}, admin.PauseOptions{Reason: reason})
	}
	return p, nil
}

// doubleClick is the time in which a second click on the button that runs a
// schedule has no effect. It is a variable for tests on a slow machine.
var doubleClick = 2 * time.Second

// schedule plans to run, pause or resume a schedule.
func (a *actionRequest) schedule(context.Context) (*plan, error) {
	name, verb := a.form.Get("name"), strings.TrimPrefix(a.name, "schedule-")
	if err := taskspec.ValidSchedule(name); err != nil {
		return nil, err
	}

	p := a.newPlan("schedule "+name, "schedule", verb, name)
	p.Fields = append(p.Fields, field{"name", name})
	p.run = func(ctx context.Context) (string, error) {
		switch verb {
		case "pause":
			return "schedule " + name + " paused", admin.PauseSchedule(ctx, a.h.r, name)
		case "resume":
			return "schedule " + name + " resumed", admin.ResumeSchedule(ctx, a.h.r, name)
		}
		return a.h.clicks.get(name, func() (string, time.Duration, error) {
			t, err := admin.RunSchedule(ctx, a.h.r, name)
			return fmt.Sprintf("task %d of schedule %s enqueued", t.ID, name), doubleClick, err
		})
	}
	return p, nil
}

// answerTime is how long the answer to a question about the tasks of a search
// counts.
const answerTime = 15 * time.Minute

// keepQuestion keeps the tasks of a question, and returns the key of this set.
func (h *handler) keepQuestion(ids []int64) string {
	key := rand.Text()
	_, _ = h.questions.get(key, func() ([]int64, time.Duration, error) { return ids, answerTime, nil })
	return key
}

// limitToQuestion returns those of the ids that the question with a key named.
// If the server doesn't know the question, it returns all ids and false.
func (h *handler) limitToQuestion(key string, ids []int64) (named []int64, isKnown bool) {
	set, _ := h.questions.get(key, func() ([]int64, time.Duration, error) { return nil, 0, nil })
	if set == nil {
		return ids, false
	}

	inSet := make(map[int64]bool, len(set))
	for _, id := range set {
		inSet[id] = true
	}

	return slices.DeleteFunc(ids, func(id int64) bool { return !inSet[id] }), true
}

// The next page shows the result of an action once. The text is in a cookie and
// not in the URL, because any site could link to a URL with a false text.
const (
	flashCookie = "runner-did"
	maxFlash    = 3000
)

func (h *handler) setFlash(w http.ResponseWriter, text string, seconds int) {
	http.SetCookie(w, &http.Cookie{
		Name:     flashCookie,
		Value:    base64.RawURLEncoding.EncodeToString([]byte(humanize.Cut(text, maxFlash))),
		Path:     h.base + "/",
		MaxAge:   seconds,
		HttpOnly: true,
		SameSite: http.SameSiteStrictMode,
	})
}

// takeFlash returns the result of the last action and removes the cookie.
func (h *handler) takeFlash(w http.ResponseWriter, req *http.Request) string {
	cookie, err := req.Cookie(flashCookie)
	if err != nil {
		return ""
	}

	h.setFlash(w, "", -1)
	text, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	if err != nil {
		return ""
	}
	return humanize.SafeLines(string(text))
}

// shellLine returns a command line of runner, quoted for a shell.
func shellLine(args ...string) string {
	return shellescape.QuoteCommand(append([]string{"runner"}, args...))
}
