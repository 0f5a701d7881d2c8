package web

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/internal/pattern"
	"example.com/runner/internal/present"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

//go:embed templates/*.html
var templateFiles embed.FS

// templates returns the templates of all pages. The first call parses them. If the package parsed them at the start of
// the program, every command of runner would take a millisecond longer, because all commands link this package.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Option("missingkey=error").ParseFS(templateFiles, "templates/*.html"))
})

// page has the fields that all pages need. The templates call its methods.
type page struct {
	Base     string // prefix of all links
	Title    string
	Nav      string // entry of this page in the navigation; empty if the page has no entry
	URL      string // URL of the page; the browser returns to it after an action
	Search   string
	Now      time.Time // present time, in the time zone of the page
	ReadOnly bool
	HideArgs bool
}

func (h *handler) newPage(req *http.Request, title, nav string) page {
	return page{Base: h.base, Title: title, Nav: nav, URL: h.base + req.URL.RequestURI(), Now: time.Now().In(zone(req)),
		ReadOnly: h.o.ReadOnly, HideArgs: h.o.HideArgs}
}

// Asset returns the URL of an embedded file. The URL changes when an embedded file changes, so browsers may cache the
// file for ever.
func (p page) Asset(name string) string { return p.Base + "/static/" + name + "?v=" + assetVersion() }

func (p page) Version() string             { return runner.Version }
func (p page) Took(d time.Duration) string { return humanize.Took(d) }
func (p page) Size(n int64) string         { return humanize.Size(n) }
func (p page) Count(n int) string          { return humanize.Count(int64(n)) }
func (p page) Plural(n int, thing string) string {
	return humanize.Plural(n, thing)
}
func (p page) Safe(text string) string { return humanize.Safe(text) }

// UpTo returns n as text. If n is greater than maxCount, it returns maxCount with a plus sign: 10,000+.
func (p page) UpTo(n int) string {
	if n > maxCount {
		return humanize.Count(maxCount) + "+"
	}
	return humanize.Count(int64(n))
}

// Ago returns the age of t with the word "ago", and t itself as a tooltip.
func (p page) Ago(t time.Time) template.HTML { return p.moment(t, humanize.Age(p.Now.Sub(t))+" ago") }

// Age returns the age of t, and t itself as a tooltip.
func (p page) Age(t time.Time) template.HTML { return p.moment(t, humanize.Age(p.Now.Sub(t))) }

// The method named In returns the time until t, and t itself as a tooltip.
func (p page) In(t time.Time) template.HTML {
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

// maxJobText is the maximum length of a command line or a job in a list, in bytes. The list cuts longer texts, because
// the arguments of a task may have 1 MiB.
const maxJobText = 500

// Job returns the command line or the job of a task, in one line.
func (p page) Job(t jobs.Task) string {
	if p.HideArgs {
		return humanize.Safe(cmp.Or(t.Label, t.Job))
	}
	return humanize.Safe(humanize.Cut(present.JobText(t), maxJobText))
}

// view is the data of a template: a struct that embeds the struct "page".
type view interface{ common() *page }

func (p *page) common() *page { return p }

// loader reads the data of a page. It returns jobs.ErrInvalid or jobs.ErrNotFound for a mistake of the user, and other
// errors for failures of the database.
type loader func(ctx context.Context, req *http.Request) (name string, v view, err error)

// fragment is the media type that the script of an open page sends in the Accept header when it loads new content.
const fragment = "text/x-fragment"

// page returns the handler of a page.
func (h *handler) page(load loader) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		ctx, cancel := readContext(req)
		defer cancel()
		name, v, err := load(ctx, req)
		switch {
		case err == nil:
		case errors.Is(err, jobs.ErrNotFound), errors.Is(err, jobs.ErrInvalid):
			h.fail(w, req, err)
			return
		case req.Context().Err() != nil: // the client has closed the request
			return
		default:
			h.logger.Warn("page", "path", req.URL.Path, "err", err)
			h.writeError(w, req, http.StatusServiceUnavailable, "The database does not answer in time. Try again in a moment.")
			return
		}

		main, ok := h.execute(w, name, v)
		if !ok {
			return
		}
		l := layout{page: h.newPage(req, v.common().Title, ""), Main: template.HTML(main)}
		l.Search = humanize.Safe(req.URL.Query().Get("q"))
		l.Nav, _, _ = strings.Cut(strings.TrimPrefix(req.URL.Path, "/"), "/")
		if l.Nav = cmp.Or(l.Nav, "overview"); l.Nav == "jobs" {
			l.Nav = "tasks"
		}
		l.HasSearch = req.URL.Path == "/tasks"
		if !strings.Contains(req.Header.Get("Accept"), fragment) { // an open page shows no message of an action elsewhere
			l.Flash = h.takeFlash(w, req)
		}
		if found := addedTask().FindStringSubmatch(l.Flash); found != nil {
			l.Added = found[1]
		}
		h.send(w, req, http.StatusOK, l)
	}
}

// addedTask matches the text about a task that an action has added.
var addedTask = pattern.Lazy(`^task ([0-9]+) of schedule \S+ enqueued`)

// layout is the data of the frame around a page.
type layout struct {
	page
	Main         template.HTML
	Flash        string
	Added        string // id of the task that an action has added; empty if it has added none
	HasSearch    bool   // whether the page has its own search field
	NoNavigation bool   // whether the page has no navigation
}

// writePage responds with a page that does not depend on the database.
func (h *handler) writePage(w http.ResponseWriter, req *http.Request, status int, name string, v view) {
	if main, ok := h.execute(w, name, v); ok {
		h.send(w, req, status, layout{page: *v.common(), Main: template.HTML(main), NoNavigation: name == "login"})
	}
}

// execute returns the text of a template. If the template fails, execute responds with 500 and returns false.
func (h *handler) execute(w http.ResponseWriter, name string, data any) ([]byte, bool) {
	var b bytes.Buffer
	if err := templates().ExecuteTemplate(&b, name, data); err != nil {
		h.logger.Error("page", "name", name, "err", err)
		http.Error(w, "500: the page could not be rendered; this is a bug in runner", http.StatusInternalServerError)
		return nil, false
	}
	return b.Bytes(), true
}

// compressors are idle writers, because each has 800 KB of tables.
var compressors = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}

// send responds with a page, compressed for a client that accepts it. Compression
// can reveal a secret by the length of a page, but no page contains one.
func (h *handler) send(w http.ResponseWriter, req *http.Request, status int, l layout) {
	text, ok := h.execute(w, "layout", l)
	if !ok {
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Add("Vary", "Accept-Encoding")
	accepted := strings.ReplaceAll(req.Header.Get("Accept-Encoding"), " ", "")
	if !strings.Contains(accepted, "gzip") || strings.Contains(accepted, "gzip;q=0") {
		w.WriteHeader(status)
		_, _ = w.Write(text) // an error means that the client is gone
		return
	}

	w.Header().Set("Content-Encoding", "gzip")
	w.WriteHeader(status)
	zip := compressors.Get().(*gzip.Writer)
	defer compressors.Put(zip)
	zip.Reset(w)
	_, _ = zip.Write(text)
	_ = zip.Close()
}

// errorView is the data of an error page.
type errorView struct {
	page
	Text string
}

// writeError responds with an error: with JSON for the API, and a page otherwise.
func (h *handler) writeError(w http.ResponseWriter, req *http.Request, status int, text string) {
	if strings.HasPrefix(req.URL.Path, "/api/") {
		writeJSON(w, status, apiProblem{Error: humanize.Safe(text)})
		return
	}
	h.writePage(w, req, status, "failure", &errorView{page: h.newPage(req, http.StatusText(status), ""), Text: humanize.Safe(text)})
}

// fail responds with an error: 404 or 400 for a mistake of the user, or else 503.
func (h *handler) fail(w http.ResponseWriter, req *http.Request, err error) {
	status := http.StatusServiceUnavailable
	switch {
	case errors.Is(err, jobs.ErrNotFound):
		status = http.StatusNotFound
	case errors.Is(err, jobs.ErrInvalid):
		status = http.StatusBadRequest
	default:
		h.logger.Warn("request failed", "path", req.URL.Path, "err", err)
	}
	h.writeError(w, req, status, sentence(err))
}

// sentence returns the text of an error as a sentence.
func sentence(err error) string {
	text := err.Error()
	if p, ok := errors.AsType[*jobs.Error](err); ok {
		text = p.Error()
	}
	return strings.ToUpper(text[:1]) + text[1:] + "."
}

func quoted(text string) string { return fmt.Sprintf("%q", text) }

// The method Of returns how many tasks ended in a state.
func (p page) Of(ended map[jobs.State]int, state string) string {
	return humanize.Count(int64(ended[jobs.State(state)]))
}

// Some is like Of, but empty instead of 0.
func (p page) Some(ended map[jobs.State]int, state string) string {
	if ended[jobs.State(state)] == 0 {
		return ""
	}
	return p.Of(ended, state)
}
