package web

import (
	"cmp"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/humanize"
	"example.com/runner/internal/search"
	"example.com/runner/internal/taskspec"
	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
)

//go:embed templates/*.html
var templateFiles embed.FS

// templates returns the templates of all pages, which the first call parses.
// (At the start of the program that would cost every command a millisecond.)
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Option("missingkey=error").ParseFS(templateFiles, "templates/*.html"))
})

// page has the fields that all pages need. The templates call its methods.
type page struct {
	Base     string // prefix of all links
	Title    string
	Path     string // path of the URL, without Base
	URL      string // URL of the page; the browser returns to it after an action
	Search   string
	Now      time.Time // present time, in the time zone of the page
	ReadOnly bool
	HideArgs bool
}

func (h *handler) newPage(req *http.Request, title string) page {
	return page{
		Base:     h.base,
		Title:    title,
		Path:     req.URL.Path,
		URL:      h.base + req.URL.RequestURI(),
		Search:   humanize.Safe(req.URL.Query().Get("q")),
		Now:      time.Now().In(zone(req)),
		ReadOnly: h.o.ReadOnly,
		HideArgs: h.o.HideArgs,
	}
}

// Nav returns the first part of the path, which is the entry of the page in the
// navigation.
func (p page) Nav() string {
	nav, _, _ := strings.Cut(strings.TrimPrefix(p.Path, "/"), "/")
	if nav == "jobs" {
		return "tasks"
	}
	return nav
}

// Asset returns the URL of an embedded file. The URL changes when an embedded
// file changes, so browsers may cache the file for ever.
func (p page) Asset(name string) string { return p.Base + "/static/" + name + "?v=" + assetVersion() }

// assetVersion returns a hash of the embedded files.
var assetVersion = sync.OnceValue(func() string {
	sum := sha256.New()
	_ = fs.WalkDir(static, ".", func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			text, _ := fs.ReadFile(static, name) // the file is embedded, so there is no error
			sum.Write(text)
		}
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)[:5])
})

func (p page) Version() string             { return db.RunnerVersion }
func (p page) Took(d time.Duration) string { return humanize.Took(d) }
func (p page) Size(n int64) string         { return humanize.Size(n) }
func (p page) Count(n int) string          { return humanize.Count(int64(n)) }
func (p page) Plural(n int, thing string) string {
	return humanize.Plural(n, thing)
}
func (p page) Safe(text string) string { return humanize.Safe(text) }

// UpTo returns n as text. If n is greater than maxCount, it returns maxCount
// with a plus sign: 10,000+.
func (p page) UpTo(n int) string {
	if n > maxCount {
		return humanize.Count(maxCount) + "+"
	}
	return humanize.Count(int64(n))
}

// Ago returns the age of t, such as 5m ago, and t itself as a tooltip.
func (p page) Ago(t time.Time) template.HTML { return p.moment(t, humanize.Age(p.Now.Sub(t))+" ago") }

// Age returns the age of t, and t itself as a tooltip.
func (p page) Age(t time.Time) template.HTML { return p.moment(t, humanize.Age(p.Now.Sub(t))) }

// Until returns the time until t, and t itself as a tooltip.
func (p page) Until(t time.Time) template.HTML {
	if !t.After(p.Now) {
		return p.moment(t, "now")
	}
	return p.moment(t, "in "+humanize.Age(humanize.Soon(t.Sub(p.Now))))
}

// Clock returns t as a time of day, with the date if it is not today.
func (p page) Clock(t time.Time) template.HTML {
	return p.moment(t, humanize.Clock(t, p.Now))
}

func (p page) moment(t time.Time, text string) template.HTML {
	if t.IsZero() {
		return "–"
	}

	local := t.In(p.Now.Location()).Format("2006-01-02 15:04:05 MST")
	if utc := t.UTC().Format("2006-01-02 15:04:05 MST"); utc != local {
		local += " · " + utc
	}
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s">%s</time>`, t.UTC().Format(time.RFC3339),
		template.HTMLEscapeString(local), template.HTMLEscapeString(text)))
}

var symbols = map[jobs.State]string{jobs.Scheduled: "◷", jobs.Pending: "○", jobs.Blocked: "⊘", jobs.Running: "▶",
	jobs.Retrying: "↻", jobs.Completed: "✓", jobs.Failed: "✗", jobs.Cancelled: "–"}

// Symbol returns the symbol of a state.
func (p page) Symbol(s jobs.State) string { return cmp.Or(symbols[s], "?") }

// State returns a state with its symbol and colour.
func (p page) State(s jobs.State) template.HTML {
	name := template.HTMLEscapeString(string(s))
	return template.HTML(`<span class="state ` + name + `"><span aria-hidden="true">` + p.Symbol(s) + `</span> ` + name + `</span>`)
}

// maxJobText is the maximum length of a command line or a job in a list, in
// bytes. The list cuts longer texts, because the arguments of a task may have 1
// MiB.
const maxJobText = 500

// Job returns the command line or the job of a task, in one line.
func (p page) Job(t jobs.Task) string {
	if p.HideArgs {
		return humanize.Safe(cmp.Or(t.Label, t.Job))
	}
	return humanize.Safe(humanize.Cut(ui.JobText(t), maxJobText))
}

// Number returns how many tasks are in a state, or ended in it.
func (p page) Number(ended map[jobs.State]int, state string) string {
	return humanize.Count(int64(ended[jobs.State(state)]))
}

// AnyNumber is Number, but empty instead of 0.
func (p page) AnyNumber(ended map[jobs.State]int, state string) string {
	if ended[jobs.State(state)] == 0 {
		return ""
	}
	return p.Number(ended, state)
}

// search returns the URL of the task list for a query.
func (p page) search(terms ...search.Term) string {
	if len(terms) == 0 {
		return p.Base + "/tasks"
	}
	return p.Base + "/tasks?q=" + escape(search.JoinTerms(terms))
}

// escape escapes a text for the query of a URL.
func escape(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "+", "%20") }

// Find returns the URL of the task list for a query. The arguments are
// alternately a key and a value of the query.
func (p page) Find(pairs ...string) string {
	var terms []search.Term
	for pair := range slices.Chunk(pairs, 2) {
		terms = append(terms, search.Term{Key: pair[0], Value: pair[1]})
	}
	return p.search(terms...)
}

// taskLink returns the URL of the page of a task. For a failed task of a search
// it contains the search, for the button that retries all tasks with the same
// cause.
func (p page) taskLink(id int64, state jobs.State, terms []search.Term) string {
	link := fmt.Sprintf("%s/tasks/%d", p.Base, id)
	if state == jobs.Failed && len(terms) > 0 {
		link += "?q=" + escape(search.JoinTerms(terms))
	}
	return link
}

// JobPage returns the URL of the page of a task's label or job.
func (p page) JobPage(t jobs.Task) string {
	if t.Label != "" {
		return p.Base + "/jobs?label=" + escape(t.Label)
	}
	return p.Base + "/jobs?job=" + escape(t.Job)
}

// ShortJob returns a short name for a task: its label if it has one, or else
// the name of its program or its job.
func (p page) ShortJob(t jobs.Task) string {
	if p.HideArgs || t.Label != "" || t.Job != command.Job {
		return humanize.Safe(cmp.Or(t.Label, t.Job))
	}

	argv, err := taskspec.Argv(t.Args)
	if err != nil {
		return t.Job
	}

	name := argv[0][strings.LastIndexByte(argv[0], '/')+1:]
	return humanize.Safe(cmp.Or(name, argv[0]))
}

// redact returns a task as the pages may show it: with HideArgs, without its
// arguments, its result, and texts that the task chose. Whoever reads tasks
// calls it.
func (h *handler) redact(t jobs.Task) jobs.Task {
	if !h.o.HideArgs {
		return t
	}

	t.Args, t.Result, t.Error, t.ErrorLine = nil, nil, "", ""
	t.Path, t.Cwd, t.EnvFile, t.Hooks = "", "", "", command.Hooks{}
	if t.Progress != nil {
		t.Progress = &jobs.Progress{Done: t.Progress.Done, Total: t.Progress.Total}
	}
	return t
}

// redactAll is redact for a list, which it changes.
func (h *handler) redactAll(list []jobs.Task) []jobs.Task {
	for i, t := range list {
		list[i] = h.redact(t)
	}
	return list
}

// canChange reports whether an action can change a task in this state.
func canChange(verb search.Verb, s jobs.State) bool {
	_, ok := verb.Filter(jobs.Filter{States: []jobs.State{s}})
	return ok || verb == search.VerbRetry && s == jobs.Completed
}

// maxErrorText is the largest length of an error in a list, in bytes.
const maxErrorText = 300

// errorLine returns one line that says why a task failed. The line has the exit
// status or signal of the last attempt, and the last line of its output or its
// error.
func errorLine(t jobs.Task) string {
	ending := ui.Ending(t.Reason, t.ExitCode, t.Signal)
	text := ending
	if message := ui.ErrorLine(t); message != "" && message != ending {
		text += " · " + message
	}
	return humanize.Safe(humanize.Cut(strings.TrimPrefix(text, " · "), maxErrorText))
}

// Each browser chooses the time zone of its pages. A cookie keeps the name of
// the zone. Without the cookie, times are in the zone of the server.

const (
	zoneCookie = "runner-zone"
	serverZone = "server" // name of the zone of the server
	utcZone    = "UTC"
)

// zone returns the time zone that the browser of a request has chosen.
func zone(req *http.Request) *time.Location {
	cookie, err := req.Cookie(zoneCookie)
	if err != nil {
		return time.Local
	}
	if chosen, err := loadZone(cookie.Value); err == nil {
		return chosen
	}
	return time.Local
}

func loadZone(name string) (*time.Location, error) {
	if name == serverZone || name == "" {
		return time.Local, nil
	}
	return time.LoadLocation(name)
}

// chooseZone handles the form for the time zone, which is at the end of each
// page. It stores the chosen zone and redirects to the page of the form.
func (h *handler) chooseZone(w http.ResponseWriter, req *http.Request) {
	name := strings.TrimSpace(req.FormValue("zone"))
	if strings.EqualFold(name, "utc") {
		name = utcZone
	}
	if _, err := loadZone(name); err != nil || strings.EqualFold(name, "local") {
		h.writeError(w, req, http.StatusBadRequest,
			"Unknown time zone "+strconv.Quote(name)+"; use server, UTC or a name such as Europe/Berlin.")
		return
	}

	http.SetCookie(w, &http.Cookie{
		Name:     zoneCookie,
		Value:    name,
		Path:     h.base + "/",
		MaxAge:   int(365 * 24 * time.Hour / time.Second),
		HttpOnly: true,
		SameSite: http.SameSiteLaxMode,
		Secure:   req.TLS != nil,
	})
	http.Redirect(w, req, h.localPath(req.FormValue("back")), http.StatusSeeOther)
}

// Zone returns the name of the time zone of the page.
func (p page) Zone() string {
	if name := p.Now.Location().String(); name != "Local" {
		return name
	}
	return serverZone
}

// Offset returns the difference of the zone of the page from UTC, in seconds.
func (p page) Offset() int {
	_, offset := p.Now.Zone()
	return offset
}

// ShortZone returns the short name of the zone of the page, such as CET.
func (p page) ShortZone() string { return p.Now.Format("MST") }
