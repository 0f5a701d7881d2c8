package web

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"example.com/runner/db"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/search"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner/admin"
)

type taskView struct {
	page
	Task        jobs.Task
	Headline    string
	JobText     string // command line or job, in one line
	CommandLine string // command line that enqueues the same task
	Settings    []string
	Metadata    []termLink // metadata of the task, each with the list of the tasks that have it, too
	Why         string
	Progress    string    // last report of the function; empty if there is none
	Used        string    // resources that the shown attempt used
	Processes   string    // processes that the command left behind; empty if there were none
	Args        *document // arguments of a function; nil for a command
	Result      *document
	Error       string
	Changes     []db.TaskChange // last changes by users
	Attempts    []attemptView
	Log         *logView
	Related     *relatedTasks // drawing of all dependencies; nil if there are none
	Link        string        // URL of this page without the number of an attempt
	From        string        // search of the list from which the user came, as a part of a URL, or empty
	Cause       *causeView    // failed tasks with the same cause; nil if the task has not failed
	Stopping    bool          // whether the running task has a cancel request
}

// Can reports whether an action can change the task.
func (v *taskView) Can(verb search.Verb) bool { return canChange(verb, v.Task.State) }

// termLink is a part of a search with the URL of a list.
type termLink struct{ Text, Link string }

// document is indented JSON. It contains only the first part if the JSON is
// large.
type document struct {
	Name string // "Arguments" or "Result"
	Text string
	More string // size of a large document; empty if Text is complete
	Link string // URL of the whole task as JSON
}

type attemptView struct {
	admin.Attempt
	N        int // number of the attempt, from 1
	Result   string
	Selected bool
}

const maxDocument = 64 << 10

// jobText returns the command line or the job of a task, up to maxDocument
// bytes. The arguments of a function are shown separately.
func (v *taskView) jobText(t jobs.Task) string {
	switch {
	case t.Job != command.Job && t.Label == "":
		return humanize.Safe(cmp.Or(t.Label, t.Job))
	case t.Job != command.Job:
		return humanize.Safe(t.Label + ": " + t.Job)
	}
	return humanize.Safe(humanize.Cut(ui.JobText(t), maxDocument))
}

// getTask returns the task of a request.
func (h *handler) getTask(ctx context.Context, req *http.Request) (jobs.Task, error) {
	id, err := strconv.ParseInt(req.PathValue("id"), 10, 64)
	if err != nil || id < 1 {
		return jobs.Task{}, &jobs.Error{Kind: jobs.ErrNotFound, What: "there is no task " + req.PathValue("id")}
	}
	t, err := h.r.Get(ctx, id)
	return h.redact(t), err
}

func (h *handler) task(ctx context.Context, req *http.Request) (view, error) {
	t, err := h.getTask(ctx, req)
	if err != nil {
		return nil, err
	}

	v := &taskView{page: h.newPage(req, ""), Task: t, Link: fmt.Sprintf("%s/tasks/%d", h.base, t.ID)}
	s := ui.Task{Task: t, Now: v.page.Now}
	if err := s.ReadHistory(ctx, h.r); err != nil {
		return nil, err
	}

	v.Title = fmt.Sprintf("%s %d %s", symbols[t.State], t.ID, v.ShortJob(t))
	v.Headline = humanize.Safe(ui.Headline(t, v.page.Now))
	v.Progress = humanize.Safe(ui.Progress(t.Progress))
	v.JobText = v.jobText(t)
	v.Why = humanize.Safe(s.Why)
	v.Processes = ui.LeftBehind(&t)
	v.addSettings(t)
	if !h.o.HideArgs {
		// Leave out a command line of more than maxDocument bytes, because
		// nobody copies such a long one.
		if again := taskspec.Command(&t, v.page.Now, false); len(again) <= maxDocument {
			v.CommandLine = humanize.SafeLines(again)
		}
	}

	v.Result = v.document("Result", t.Result)
	if t.Job != command.Job {
		v.Args = v.document("Arguments", t.Args)
	}
	if t.Reason != jobs.ReasonExit && t.Reason != jobs.ReasonSignal {
		v.Error = humanize.SafeLines(t.Error)
	}
	if v.Related, err = h.relatedOf(ctx, v.page, t); err != nil {
		return nil, err
	}
	if v.Cause = h.cause(v.page, t, v.Search); v.Search != "" {
		v.From = "&q=" + escape(v.Search)
	}

	for _, c := range s.Changes {
		if h.o.HideArgs {
			c.Text = ""
		}
		c.By, c.Text = humanize.Safe(c.By), humanize.Safe(c.Text)
		v.Changes = append(v.Changes, c)
	}

	v.Stopping = t.State == jobs.Running && !t.CancelRequestedAt.IsZero()
	return v, h.attempts(ctx, v, s.Attempts, req)
}

// attempts adds the list of attempts to the page, and the output of one
// attempt: the requested attempt or the last one.
func (h *handler) attempts(ctx context.Context, v *taskView, attempts []admin.Attempt, req *http.Request) error {
	shown := len(attempts)
	if n, err := strconv.Atoi(req.FormValue("attempt")); err == nil && 1 <= n && n <= len(attempts) {
		shown = n
	}

	for i, a := range attempts {
		view := attemptView{Attempt: a, N: i + 1, Result: string(a.State), Selected: i+1 == shown}
		if a.State == jobs.Failed {
			view.Result = ui.Ending(a.Reason, a.ExitCode, a.Signal)
		}
		view.Worker = humanize.Safe(a.Worker)
		v.Attempts = append(v.Attempts, view)
	}

	if shown > 0 {
		v.Used = ui.Used(attempts[shown-1].Usage)
	}
	if shown == 0 || h.o.HideArgs {
		return nil
	}

	var err error
	v.Log, err = h.lastLines(ctx, v, attempts[shown-1], shown, req.FormValue("attempt") != "")
	return err
}

// addSettings adds the settings of a task that differ from the default.
func (v *taskView) addSettings(t jobs.Task) {
	add := func(on bool, format string, args ...any) {
		if on {
			v.Settings = append(v.Settings, humanize.Safe(fmt.Sprintf(format, args...)))
		}
	}
	add(true, "priority %d", t.Priority)
	add(t.Cwd != "", "in %s", t.Cwd)
	add(t.UniqueKey != "", "unique %s", t.UniqueKey)
	add(t.Losses > 0, "lost %d of %d", t.Losses, t.MaxLosses)
	spec := taskspec.SpecOf(&t)
	for _, key := range slices.Sorted(maps.Keys(spec.Metadata)) {
		text := key + "=" + spec.Metadata[key]
		v.Metadata = append(v.Metadata, termLink{humanize.Safe(humanize.Cut(text, maxErrorText)), v.Find(search.KeyMeta, text)})
	}

	spec.Metadata = nil
	for _, text := range taskspec.Chosen(&spec, false) {
		add(true, "%s", text)
	}

	add(t.InputBytes > 0, "input %s", humanize.Size(t.InputBytes))
}

// document returns a document for JSON. It keeps the numbers as they are
// written.
func (v *taskView) document(name string, text json.RawMessage) *document {
	if len(text) == 0 {
		return nil
	}

	d := &document{Name: name, Link: fmt.Sprintf("%s/api/v1/tasks/%d", v.Base, v.Task.ID)}
	if len(text) > maxDocument {
		d.More = humanize.Size(int64(len(text)))
		d.Text = humanize.SafeLines(strings.ToValidUTF8(string(text[:maxDocument]), "")) + "…"
		return d
	}

	var b bytes.Buffer
	if json.Indent(&b, text, "", "  ") != nil {
		b.Reset()
		b.Write(text)
	}

	d.Text = humanize.SafeLines(b.String())
	return d
}
