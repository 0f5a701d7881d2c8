// Package web shows a runner's queues, tasks and schedules to a browser, and its figures to Prometheus. Pages are made on the server and
// work without JavaScript; with it they keep themselves up to date. Nothing is fetched from another host, and nothing here can enqueue
// a command.
//
// A program that embeds runner mounts Handler behind its own authentication; Listen is the server of "runner serve", with a token of its
// own.
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

	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// Options of Handler. The zero Options serves nothing: see Authorize.
type Options struct {
	// BasePath is where the pages begin, as in "/admin/tasks". Requests come with it in their path. Defaults to "/".
	BasePath string
	// ReadOnly leaves out every form, and refuses whatever would change something. Defaults to false.
	ReadOnly bool
	// HideArgs keeps arguments, commands, results and output on the server. Defaults to false.
	HideArgs bool
	// Authorize says who may see and do everything: its error is answered with 403 and not shown. It must not be nil: then nothing but
	// 403 is served.
	Authorize func(*http.Request) error
	// Log receives failed readings and what people did. Defaults to none.
	Log *slog.Logger

	auth *authenticator // of Listen, instead of Authorize
}

// limits of one request.
const (
	readTimeout   = 2 * time.Second  // a page's readings
	actionTimeout = time.Minute      // an action on many tasks
	writeTimeout  = 30 * time.Second // an answer that is no stream
	maxBody       = 1 << 20
)

type handler struct {
	r          *runner.Runner
	o          Options
	base       string // without a slash at its end: what links begin with
	logger     *slog.Logger
	cross      *http.CrossOriginProtection
	mux        *http.ServeMux
	pages      pageCache
	live       live
	trends     trendCache
	histograms histograms
}

//go:embed static
var static embed.FS

// Handler serves the pages of r. It reads r's database and starts nothing, so r need not Work. Requests that change something must come
// from the same origin, by net/http's CrossOriginProtection.
func Handler(r *runner.Runner, o Options) http.Handler {
	h := &handler{r: r, o: o, base: strings.TrimRight(path.Clean("/"+o.BasePath), "/"), logger: o.Log, live: live{r: r}, cross: http.NewCrossOriginProtection(), mux: http.NewServeMux()}
	if h.logger == nil {
		h.logger = slog.New(slog.DiscardHandler)
	}
	h.routes()
	return h
}

func (h *handler) routes() {
	assets, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // it is embedded
	}
	files := http.StripPrefix("/static/", http.FileServerFS(assets))
	h.mux.HandleFunc("GET /static/{file}", func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Cache-Control", "public, max-age=31536000, immutable") // their names carry a version
		files.ServeHTTP(w, req)
	})
	h.mux.HandleFunc("GET /{$}", h.page(h.overview))
	h.mux.HandleFunc("GET /tasks", h.page(h.tasks))
	h.mux.HandleFunc("GET /tasks/{id}", h.page(h.task))
	h.mux.HandleFunc("GET /tasks/{id}/log", h.log)
	h.mux.HandleFunc("GET /tasks/{id}/args", h.document(func(t jobs.Task) []byte { return t.Args }))
	h.mux.HandleFunc("GET /tasks/{id}/result", h.document(func(t jobs.Task) []byte { return t.Result }))
	h.mux.HandleFunc("GET /events", h.events)
	h.mux.HandleFunc("GET /schedules", h.page(h.schedules))
	for name, act := range actions {
		h.mux.HandleFunc("POST /actions/"+name, h.action(act))
	}
	h.mux.HandleFunc("GET /metrics", h.metrics)
	h.mux.HandleFunc("GET /healthz", h.healthz)
	h.mux.HandleFunc("GET /readyz", h.readyz)
	if h.o.auth != nil {
		h.mux.HandleFunc("GET /login", func(w http.ResponseWriter, req *http.Request) { h.loginPage(w, req, http.StatusOK, "") })
		h.mux.HandleFunc("POST /login", h.login)
	}
	h.mux.HandleFunc("/", func(w http.ResponseWriter, req *http.Request) {
		h.writeError(w, req, http.StatusNotFound, "There is no such page.")
	})
}

// policy is what a page may load and do: nothing from elsewhere, no inline script or style, no frame around it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// ServeHTTP is the way of every request: headers, Host, path, who asks, and whether it may change something.
func (h *handler) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeTimeout)) // not every writer can
	if h.o.auth != nil && !h.o.auth.isOwnHost(req) {
		http.Error(w, "403: this server does not go by the name "+quoted(req.Host)+" (runner serve --public-url)", http.StatusForbidden)
		return
	}
	rest, ok := strings.CutPrefix(req.URL.Path, h.base)
	if !ok || rest != "" && rest[0] != '/' {
		http.NotFound(w, req)
		return
	}
	if rest == "" {
		http.Redirect(w, req, h.base+"/", http.StatusPermanentRedirect)
		return
	}
	inner := req.Clone(req.Context())
	inner.URL.Path, inner.URL.RawPath = rest, ""
	inner.Body = http.MaxBytesReader(w, req.Body, maxBody)
	if !h.allowed(w, inner) {
		return
	}
	if err := h.cross.Check(inner); err != nil {
		h.writeError(w, inner, http.StatusForbidden, "This came from another site.")
		return
	}
	if h.o.ReadOnly && req.Method != http.MethodGet && req.Method != http.MethodHead && rest != "/login" {
		h.writeError(w, inner, http.StatusForbidden, "These pages are read-only.")
		return
	}
	h.mux.ServeHTTP(w, inner)
}

// allowed says whether a request may go on; if not, it has been answered.
func (h *handler) allowed(w http.ResponseWriter, req *http.Request) bool {
	if needsNoToken(req.URL.Path) {
		return true
	}
	if g := h.o.auth; g != nil {
		if g.hasToken(req) || req.URL.Path == "/login" || strings.HasPrefix(req.URL.Path, "/static/") {
			return true
		}
		w.Header().Set("WWW-Authenticate", `Bearer realm="runner"`)
		h.loginPage(w, req, http.StatusUnauthorized, "")
		return false
	}
	switch {
	case h.o.Authorize == nil:
		http.Error(w, "403: web.Options.Authorize is not set: nobody may see this", http.StatusForbidden)
		return false
	case h.o.Authorize(req) != nil:
		http.Error(w, "403: you may not see this", http.StatusForbidden)
		return false
	}
	return true
}

// needsNoToken says whether a path needs no token: it tells nothing of tasks.
func needsNoToken(path string) bool { return path == "/healthz" || path == "/readyz" }

// readContext is the context of a page's readings.
func readContext(req *http.Request) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(req.Context(), readTimeout, errSlow)
}

var errSlow = errors.New("it took too long")
