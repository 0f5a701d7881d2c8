package web

import (
	"compress/gzip"
	"context"
	"embed"
	"errors"
	"html/template"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"example.com/runner/internal/humanize"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
)

// Options are the options of Handler. A Handler with the zero Options rejects
// every request; see Authorize.
type Options struct {
	// BasePath is the path prefix of the pages, such as "/admin" in
	// "/admin/tasks". All links begin with it. Requests may come with or
	// without it, so a proxy may strip it. Defaults to "/".
	BasePath string
	// ReadOnly removes every form and rejects requests that would change
	// something. Defaults to false.
	ReadOnly bool
	// HideArgs hides arguments, commands, results and output. Defaults to
	// false.
	HideArgs bool
	// Authorize decides whether a request may see and do everything. If it
	// returns an error, the response is 403 without the text of the error. If
	// Authorize is nil, every response is 403. The paths /healthz and /readyz
	// need no Authorize.
	Authorize func(*http.Request) error
	// Log is the logger for errors of the database and for the actions of
	// users. Defaults to no log.
	Log *slog.Logger

	auth *authenticator // checks the tokens for a Server; nil for Handler, which calls Authorize
}

// readTimeout is the time limit for the database reads of a page. It is a
// variable so that tests can pass on a slow machine.
var readTimeout = 2 * time.Second

// These are the limits of a request, besides readTimeout.
const (
	slowTimeout   = 10 * time.Second // time limit for metrics, and for counting the tasks of all queues
	actionTimeout = time.Minute      // time limit for an action on many tasks
	writeTimeout  = 30 * time.Second // time limit for sending a response that is not a stream
	maxBody       = 1 << 20
)

type handler struct {
	r          *runner.Runner
	o          Options
	base       string // prefix of all links, without a slash at its end
	logger     *slog.Logger
	cross      *http.CrossOriginProtection
	mux        *http.ServeMux
	live       live
	trends     cache[trend]      // by name of the span
	workerRuns cache[workerRuns] // by name of the span
	counts     cache[[]admin.QueueStatus]
	clicks     cache[string]  // what the last runs of schedules did, by name
	questions  cache[[]int64] // ids of the tasks that a question has named
	scraping   chan struct{}  // holds a value during a scrape of /metrics
}

//go:embed static
var static embed.FS

// Handler serves the pages of r below Options.BasePath, and in the same place
// /metrics (for Prometheus), /api/v1/, /healthz and /readyz. Authorize decides
// about all of these paths except /healthz and /readyz. Handler reads r's
// database and starts no worker. Requests that change something must have the
// same origin, which net/http's CrossOriginProtection checks.
func Handler(r *runner.Runner, o Options) http.Handler { return newHandler(r, o) }

func newHandler(r *runner.Runner, o Options) *handler {
	h := &handler{
		r:      r,
		o:      o,
		base:   strings.TrimRight(path.Clean("/"+o.BasePath), "/"),
		logger: o.Log,
		live:   live{r: r},
		cross:  http.NewCrossOriginProtection(),
		mux:    http.NewServeMux(),

		scraping: make(chan struct{}, 1),
	}
	if h.logger == nil {
		h.logger = slog.New(slog.DiscardHandler)
	}

	h.routes()
	return h
}

func (h *handler) routes() {
	assets, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // the directory is embedded, so there is no error
	}

	files := http.StripPrefix("/static/", http.FileServerFS(assets))
	h.mux.HandleFunc("GET /static/{file}", func(w http.ResponseWriter, req *http.Request) {
		// the URL contains a version, so browsers may keep the file for ever
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
		files.ServeHTTP(w, req)
	})
	h.mux.HandleFunc("GET /{$}", h.page("overview", h.overview))
	h.mux.HandleFunc("GET /tasks", h.jump(h.page("tasks", h.tasks)))
	h.mux.HandleFunc("GET /tasks/{id}", h.page("task", h.task))
	h.mux.HandleFunc("GET /tasks/{id}/log", h.log)
	h.mux.HandleFunc("GET /schedules", h.page("schedules", h.schedules))
	h.mux.HandleFunc("GET /schedules/{name}", h.page("schedule", h.schedule))
	h.mux.HandleFunc("GET /jobs", h.page("job", h.job))
	h.mux.HandleFunc("GET /workers", h.page("workers", h.workersPage))
	h.mux.HandleFunc("GET /events", h.events)
	h.mux.HandleFunc("GET /zone", h.chooseZone)
	h.mux.HandleFunc("POST /actions/{name}", h.action)
	h.mux.HandleFunc("GET /api/v1/tasks", h.apiList)
	h.mux.HandleFunc("GET /api/v1/tasks/{id}", h.apiGet)
	h.mux.HandleFunc("/api/", h.apiOther)
	h.mux.HandleFunc("GET /metrics", h.metrics)
	h.mux.HandleFunc("GET /healthz", h.healthz)
	h.mux.HandleFunc("GET /readyz", h.readyz)
	if h.o.auth != nil {
		h.mux.HandleFunc("GET /login", func(w http.ResponseWriter, req *http.Request) {
			h.loginPage(w, req, http.StatusOK, "")
		})
		h.mux.HandleFunc("POST /login", h.login)
	}

	h.mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		h.writeError(w, req, http.StatusNotFound, "This page does not exist.")
	})
}

// policy is the Content-Security-Policy of the pages. It allows nothing from
// other hosts, no inline script or style, and no frame around a page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP sets the headers of the response. It checks the host and the path
// of the request, and whether the user may send it. Then it calls the handler
// of the path.
func (h *handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	// ignore the error of a writer without deadlines
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout))

	if h.o.auth != nil && !h.o.auth.isOwnHost(req) {
		h.deny(w, req, "unknown host "+strconv.Quote(req.Host)+"; see runner serve --public-url")
		return
	}

	rest, ok := strings.CutPrefix(req.URL.Path, h.base)
	switch {
	case ok && rest == "":
		http.Redirect(w, req, h.base+"/", http.StatusPermanentRedirect)
		return
	case !ok || rest[0] != '/': // a proxy has stripped the prefix; links keep it
		rest = req.URL.Path
	}

	inner := req.Clone(req.Context())
	inner.URL.Path, inner.URL.RawPath = rest, ""
	inner.Body = http.MaxBytesReader(w, req.Body, maxBody)
	if !h.authorize(w, inner) {
		return
	}
	if err := h.cross.Check(inner); err != nil {
		h.writeError(w, inner, http.StatusForbidden, "The request came from another site.")
		return
	}
	if h.o.ReadOnly && req.Method != http.MethodGet && req.Method != http.MethodHead && rest != "/login" {
		h.writeError(w, inner, http.StatusForbidden, "These pages are read-only.")
		return
	}

	h.mux.ServeHTTP(w, inner)
}

// readContext returns a context for the database reads of a page.
func readContext(req *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeout(req.Context(), readTimeout)
}

// view is the data of a template: a struct that embeds page.
type view interface{ common() *page }

func (p *page) common() *page { return p }

// loader reads the data of a page.
type loader func(context.Context, *http.Request) (view, error)

// page returns the handler of a page, which has a template of this name.
func (h *handler) page(name string, load loader) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		ctx, cancel := readContext(req)
		defer cancel()

		v, err := load(ctx, req)
		if err != nil {
			h.fail(w, req, err)
			return
		}

		h.render(w, req, http.StatusOK, name, v)
	}
}

// layout is the data of the frame around a page.
type layout struct {
	page
	Main         template.HTML
	Flash        string // what the last action did
	Added        string // id of the task that this action has added
	HasSearch    bool   // whether the page has its own search field
	NoNavigation bool
}

// fragment is the media type that the script of an open page sends in the
// Accept header when it loads new content.
const fragment = "text/x-fragment"

func isFragment(req *http.Request) bool { return strings.Contains(req.Header.Get("Accept"), fragment) }

// addedTask matches the text about a task that an action has added.
var addedTask = humanize.Lazy(`^task ([0-9]+) of schedule \S+ enqueued`)

// render responds with a page.
func (h *handler) render(w http.ResponseWriter, req *http.Request, status int, name string, v view) {
	l := layout{page: *v.common(), HasSearch: name == "tasks", NoNavigation: name == "login"}
	// An open page shows no message of an action elsewhere, and an error keeps
	// it for the next page.
	if !isFragment(req) && status == http.StatusOK {
		l.Flash = h.takeFlash(w, req)
	}
	if found := addedTask().FindStringSubmatch(l.Flash); found != nil {
		l.Added = found[1]
	}

	var main, text strings.Builder
	err := templates().ExecuteTemplate(&main, name, v)
	if err == nil {
		l.Main = template.HTML(main.String())
		err = templates().ExecuteTemplate(&text, "layout", l)
	}
	if err != nil {
		h.logger.Error("page", "name", name, "err", err)
		http.Error(w, "500: the page could not be rendered; this is a bug in runner", http.StatusInternalServerError)
		return
	}

	send(w, req, status, "text/html; charset=utf-8", text.String())
}

// compressors are idle writers, because each has 800 KB of tables.
var compressors = sync.Pool{New: func() any { return gzip.NewWriter(io.Discard) }}

// send responds with a text, compressed for a client that accepts it.
// (Compression can reveal a secret by the length of a response, but none
// contains one.)
func send(w http.ResponseWriter, req *http.Request, status int, kind, text string) {
	w.Header().Set("Content-Type", kind)
	w.Header().Add("Vary", "Accept-Encoding")
	accepted := strings.ReplaceAll(req.Header.Get("Accept-Encoding"), " ", "")
	if !strings.Contains(accepted, "gzip") || strings.Contains(accepted, "gzip;q=0") {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text) // an error means that the client is gone
		return
	}

	w.Header().Set("Content-Encoding", "gzip")
	w.WriteHeader(status)
	zip := compressors.Get().(*gzip.Writer)
	defer compressors.Put(zip)

	zip.Reset(w)
	_, _ = io.WriteString(zip, text)
	_ = zip.Close()
}

// errorView is the data of an error page.
type errorView struct {
	page
	Text string
}

// isAPI reports whether a request gets its errors as JSON.
func isAPI(req *http.Request) bool { return strings.HasPrefix(req.URL.Path, "/api/") }

// writeError responds with an error: with JSON for the API, and a page
// otherwise.
func (h *handler) writeError(w http.ResponseWriter, req *http.Request, status int, text string) {
	text = humanize.Safe(text)
	if isAPI(req) {
		writeJSON(w, req, status, apiProblem{Error: text})
		return
	}
	text = strings.ToUpper(text[:1]) + strings.TrimSuffix(text[1:], ".") + "."
	h.render(w, req, status, "failure", &errorView{page: h.newPage(req, http.StatusText(status)), Text: text})
}

// fail responds with an error: 404 or 400 for a mistake of the user, or else
// 503.
func (h *handler) fail(w http.ResponseWriter, req *http.Request, err error) {
	text := err.Error()
	if p, ok := errors.AsType[*jobs.Error](err); ok {
		text = p.Error() // without what a caller has put before it
	}

	switch {
	case errors.Is(err, jobs.ErrNotFound):
		h.writeError(w, req, http.StatusNotFound, text)
		return
	case errors.Is(err, jobs.ErrInvalid):
		h.writeError(w, req, http.StatusBadRequest, text)
		return
	}

	if req.Context().Err() == nil { // else the client is gone, or this server ends
		h.logger.Warn("request failed", "path", req.URL.Path, "err", err)
	}
	if req.Method == http.MethodGet {
		text = "The database does not answer in time. Try again in a moment, or add state: or since: to a search."
	}

	h.writeError(w, req, http.StatusServiceUnavailable, text)
}
