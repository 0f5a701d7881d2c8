// Package web serves pages with the queues, tasks and schedules of a runner to a browser, and metrics to Prometheus. The server renders the
// pages, so they work without JavaScript. With JavaScript they refresh themselves. The pages load nothing from another host. No request to
// this package can enqueue a command.
//
// A program that embeds runner mounts Handler behind its own authentication. Authorize decides who may see the pages:
//
//	package main
//
//	import (
//		"context"
//		"errors"
//		"log"
//		"net/http"
//
//		"example.com/runner/runner"
//		"example.com/runner/web"
//	)
//
//	func authorize(req *http.Request) error {
//		if _, password, _ := req.BasicAuth(); password != "correct horse" {
//			return errors.New("not an administrator")
//		}
//		return nil
//	}
//
//	func main() {
//		r, err := runner.Open(context.Background(), "app.db", runner.Options{})
//		if err != nil {
//			log.Fatal(err)
//		}
//		defer r.Close()
//		http.Handle("/admin/tasks/", web.Handler(r, web.Options{BasePath: "/admin/tasks", Authorize: authorize}))
//		log.Print(http.ListenAndServe("127.0.0.1:8080", nil))
//	}
//
// The program can wrap Handler in another handler, which asks the browser for a password: if the password is missing, it sets
// WWW-Authenticate and responds with 401. This outer handler should pass on requests for /healthz and /readyz without a password, because
// health checks send none.
//
// Listen serves the same pages on an address of its own, and requires a token. The command "runner serve" uses it.
//
// A test of the mounted pages needs no browser. It makes a Runner with package runnertest and records the response:
//
//	pages := web.Handler(runnertest.New(t), web.Options{BasePath: "/admin/tasks", Authorize: authorize})
//	response := httptest.NewRecorder()
//	pages.ServeHTTP(response, httptest.NewRequest(http.MethodGet, "/admin/tasks/", nil))
//	if response.Code != http.StatusForbidden {
//		t.Errorf("got status %d without a password, want 403", response.Code)
//	}
package web

import (
	"context"
	"embed"
	"errors"
	"io/fs"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"time"

	"example.com/runner/internal/admin"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Options are the options of Handler. A Handler with the zero Options rejects every request; see Authorize.
type Options struct {
	// BasePath is the path prefix of the pages, such as "/admin" in "/admin/tasks". All links begin with it. Requests may
	// come with or without it, so a proxy may strip it. Defaults to "/".
	BasePath string
	// ReadOnly removes every form and rejects requests that would change something. Defaults to false.
	ReadOnly bool
	// HideArgs hides arguments, commands, results and output. Defaults to false.
	HideArgs bool
	// Authorize decides whether a request may see and do everything. If it returns an error, the response is 403
	// without the text of the error. If Authorize is nil, every response is 403. The paths /healthz and /readyz need no
	// Authorize.
	Authorize func(*http.Request) error
	// Log is the logger for errors of the database and for the actions of users. Defaults to no log.
	Log *slog.Logger

	auth *authenticator // checks the token of each request to the server of Listen; nil for Handler, which calls Authorize instead
}

// readTimeout is the time limit for the database reads of a page. It is a variable so that tests can pass on a slow machine.
var readTimeout = 2 * time.Second

// These are the limits of a request, besides readTimeout.
const (
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
	trends     cache[admin.Trend] // by name of the range
	workerRuns cache[workerRuns]  // by name of the span
	counts     cache[[]runner.Queue]
	clicks     cache[string]  // what the last runs of schedules did, by name
	asked      cache[[]int64] // ids of the tasks that a question has named
}

//go:embed static
var static embed.FS

// Handler serves the pages of r below Options.BasePath, and in the same place /metrics (for Prometheus), /api/v1/, /healthz and /readyz.
// Authorize decides about all of these paths except /healthz and /readyz. Handler reads r's database and starts no worker. Requests that
// change something must have the same origin, which net/http's CrossOriginProtection checks.
func Handler(r *runner.Runner, o Options) http.Handler { return newHandler(r, o) }

func newHandler(r *runner.Runner, o Options) *handler {
	h := &handler{r: r, o: o, base: strings.TrimRight(path.Clean("/"+o.BasePath), "/"), logger: o.Log, live: live{r: r},
		cross: http.NewCrossOriginProtection(), mux: http.NewServeMux()}
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
	h.mux.HandleFunc("GET /{$}", h.page(h.overview))
	h.mux.HandleFunc("GET /tasks", h.jump(h.page(h.tasks)))
	h.mux.HandleFunc("GET /workers", h.page(h.workersPage))
	h.mux.HandleFunc("GET /tasks/{id}", h.page(h.task))
	h.mux.HandleFunc("GET /tasks/{id}/dependencies", h.page(h.dependencies))
	h.mux.HandleFunc("GET /tasks/{id}/log", h.log)
	h.mux.HandleFunc("GET /tasks/{id}/args", h.document(func(t jobs.Task) []byte { return t.Args }))
	h.mux.HandleFunc("GET /tasks/{id}/result", h.document(func(t jobs.Task) []byte { return t.Result }))
	h.mux.HandleFunc("GET /events", h.events)
	h.mux.HandleFunc("GET /schedules", h.page(h.schedules))
	h.mux.HandleFunc("GET /schedules/{name}", h.page(h.schedule))
	h.mux.HandleFunc("GET /jobs", h.page(h.job))
	h.mux.HandleFunc("GET /zone", h.chooseZone)
	h.mux.HandleFunc("POST /actions/{name}", h.action)
	h.mux.HandleFunc("GET /api/v1/tasks", h.apiList)
	h.mux.HandleFunc("GET /api/v1/tasks/{id}", h.apiGet)
	h.mux.HandleFunc("/api/", h.apiOther)
	h.mux.HandleFunc("GET /metrics", h.metrics)
	h.mux.HandleFunc("GET /healthz", h.healthz)
	h.mux.HandleFunc("GET /readyz", h.readyz)
	if h.o.auth != nil {
		h.mux.HandleFunc("GET /login", func(w http.ResponseWriter, req *http.Request) { h.loginPage(w, req, http.StatusOK, "") })
		h.mux.HandleFunc("POST /login", h.login)
	}
	h.mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		h.writeError(w, req, http.StatusNotFound, "This page does not exist.")
	})
}

// policy is the Content-Security-Policy of the pages. It allows nothing from other hosts, no inline script or style,
// and no frame around a page.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP sets the headers of the response. It checks the host and the path of the request, and whether the user may
// send it. Then it calls the handler of the path.
func (h *handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout)) // ignore the error of a writer without deadlines
	if h.o.auth != nil && !h.o.auth.isOwnHost(req) {
		h.deny(w, req, "unknown host "+quoted(req.Host)+"; see runner serve --public-url")
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
	if !h.allowed(w, inner) {
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

// allowed reports whether a request is authorized. If the request is not authorized, allowed sends the response.
func (h *handler) allowed(w http.ResponseWriter, req *http.Request) bool {
	if needsNoToken(req.URL.Path) {
		return true
	}
	if a := h.o.auth; a != nil {
		if a.hasToken(req) || req.URL.Path == "/login" || strings.HasPrefix(req.URL.Path, "/static/") {
			return true
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="runner"`)
		if strings.HasPrefix(req.URL.Path, "/api/") {
			h.writeError(w, req, http.StatusUnauthorized, "the request has no valid token")
			return false
		}
		h.loginPage(w, req, http.StatusUnauthorized, "")
		return false
	}
	switch {
	case h.o.Authorize == nil:
		h.deny(w, req, "access denied, because web.Options.Authorize is not set")
		return false
	case h.o.Authorize(req) != nil:
		h.deny(w, req, "access denied")
		return false
	}
	return true
}

// deny responds with 403 to a client that may not see the pages: with JSON for the API, and plain text otherwise.
func (h *handler) deny(w http.ResponseWriter, req *http.Request, text string) {
	if strings.HasPrefix(req.URL.Path, "/api/") {
		h.writeError(w, req, http.StatusForbidden, text)
		return
	}
	http.Error(w, "403: "+text, http.StatusForbidden)
}

// needsNoToken reports whether a path is public. Public paths reveal nothing about tasks.
func needsNoToken(path string) bool { return path == "/healthz" || path == "/readyz" }

// readContext returns a context for the database reads of a page.
func readContext(req *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(req.Context(), readTimeout, errSlow)
}

var errSlow = errors.New("the query took too long")
