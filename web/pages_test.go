package web_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
	"example.com/runner/web"
)

func TestOverview(t *testing.T) {
	r := open(t)
	s := serve(t, r, web.ServerOptions{})
	testkit.Contains(t, s.page("/"), "There are no tasks yet", "runner enqueue -- backup.sh", "No worker runs",
		"<title>Overview – runner</title>")
	shell(t, r, "exit 1")
	shell(t, r, "true", jobs.Queue("media"))
	testkit.Contains(t, s.page("/"), "no worker runs, and 2 tasks are unfinished", `class="problem grave"`, "<code>runner work</code>",
		"<title>! no worker – runner</title>")
	runnerkit.Drain(t, r, web1)
	page := s.page("/")
	testkit.Contains(t, page, "<title>✗ 1 failed – runner</title>", "1 task failed in default in 24h",
		`href="/tasks?q=state%3Afailed%20queue%3Adefault%20since%3A1d"`, `action="/actions/queue-pause"`)
	testkit.ContainsNone(t, page, "There are no tasks yet")

	// A retry makes the failed task pending. The overview then no longer
	// reports the failure as a problem, but still counts it.
	form := url.Values{"query": {"state:failed queue:default"}, "back": {"/tasks?q=state:failed%20queue:default"}}
	_, page = s.post("/actions/retry", form)
	confirm(t, form, page)
	_, page = s.post("/actions/retry", form)
	testkit.Contains(t, page, "1 task retried, to run again",
		`No task matches. <a href="/tasks?q=queue%3Adefault">Search in all states</a>`)
	page = s.page("/")
	testkit.Contains(t, page,
		`<a class="tile" href="/tasks?q=state%3Afailed%20since%3A1d"><span>Failed 24h</span><b>0</b> <small>· 1 failure</small>`)
	testkit.ContainsNone(t, page, "failed in default", "✗")
}

func TestChartShowsShortestRangeWithEndedTask(t *testing.T) {
	r := open(t)
	shell(t, r, "true")
	runnerkit.Drain(t, r, web1)
	s := serve(t, r, web.ServerOptions{})
	testkit.Contains(t, s.page("/"), "Finished per minute", `<a href="/?range=1h" aria-current="true">`)
	write(t, r, "UPDATE counters SET minute = minute - 180")
	s = serve(t, r, web.ServerOptions{})
	testkit.Contains(t, s.page("/"), "Finished per 15 minutes", `<a href="/?range=24h" aria-current="true">`)
	testkit.Contains(t, s.page("/?range=1h"), "Finished per minute", `<a href="/?range=1h" aria-current="true">`)
}

func TestEveryFailedRowShowsItsError(t *testing.T) {
	r := open(t)
	shell(t, r, "echo first; echo 'curl: (22) The requested URL returned error: 503' >&2; exit 22")
	shell(t, r, `printf 'working\r50 %%\r\033[31mno space left\033[0m\n\n'; exit 1`)
	shell(t, r, "nosuchcommand-at-all")
	shell(t, r, "true")
	runnerkit.Drain(t, r, web1)
	s := serve(t, r, web.ServerOptions{})
	page := s.page("/tasks?q=state:failed")
	testkit.Contains(t, page, "exit 22 · curl: (22) The requested URL returned error: 503", "exit 1 · no space left",
		"exit 127 · ", "3 tasks", "Retry all matching…", "Delete all matching…", `aria-current="true">failed <b>3</b>`)
	testkit.ContainsNone(t, page, `id="t4"`)
	testkit.Contains(t, s.page("/tasks?q=zzz"), "No task matches")
	testkit.Contains(t, s.page("/tasks?q=queue:default"), "4 tasks", "Retry all matching…") // three failed tasks and a completed one
	testkit.Contains(t, s.page("/tasks?q=nosuch"), `id="t3"`)
}

func TestInvalidSearchShowsItsError(t *testing.T) {
	r := open(t)
	shell(t, r, "true")
	s := serve(t, r, web.ServerOptions{})
	for query, want := range map[string]string{"quue:x": "unknown selector", "state:done": "unknown state", "since:5": "missing unit",
		"%22x": "a quotation mark is missing at the end"} {
		page := s.page("/tasks?q=" + query)
		testkit.Contains(t, page, want, `role="alert"`, `aria-invalid="true"`)
		testkit.ContainsNone(t, page, `id="t1"`, "matching…")
	}
	if status, _ := s.get("/tasks?from=x"); status != http.StatusBadRequest {
		t.Errorf("from=x: got status %d, want 400", status)
	}
}

func TestListHasPages(t *testing.T) {
	r := open(t)
	for range 120 {
		shell(t, r, "true")
	}
	s := serve(t, r, web.ServerOptions{})
	older := regexp.MustCompile(`rel="next" href="([^"]+)"`)
	seen, path := 0, "/tasks?q=state:pending"
	for range 3 {
		page := s.page(path)
		seen += strings.Count(page, `<tr id="t`)
		testkit.Contains(t, page, "120 tasks")
		if match := older.FindStringSubmatch(page); match != nil {
			path = strings.ReplaceAll(match[1], "&amp;", "&")
		}
	}
	if seen != 120 {
		t.Errorf("got %d tasks on all pages, want 120", seen)
	}
	testkit.ContainsNone(t, s.page(path), `rel="next"`)
}

func TestQueueShowsItsLimit(t *testing.T) {
	r := open(t)
	shell(t, r, "true", jobs.Queue("media"))
	shell(t, r, "true")
	limit := admin.Limit{Target: admin.Target{Kind: admin.QueueTarget, Name: "media"}, Running: 2, Rate: 100, Per: time.Minute, Burst: 100}
	testkit.NoError(t, admin.SetLimit(t.Context(), r, limit))
	page := serve(t, r, web.ServerOptions{}).page("/")
	testkit.Contains(t, page, ">0/2</span>", ">100/1m</span>")
	if strings.Count(page, "/1m</span>") != 1 {
		t.Errorf("got %d rates, want 1", strings.Count(page, "/1m</span>"))
	}
}

func TestTaskLinksToItsDependencies(t *testing.T) {
	r := open(t)
	a, b := shell(t, r, "exit 1"), shell(t, r, "true")
	runnerkit.Drain(t, r, web1)
	c := shell(t, r, "true", jobs.Lane("acct 7"))
	d := shell(t, r, "true", jobs.DependsOn(b, c), jobs.DependsOnAny(a))
	e := shell(t, r, "true", jobs.DependsOn(d))
	write(t, r, "DELETE FROM tasks WHERE id = ?", b) // runner itself keeps b while d waits
	s := serve(t, r, web.ServerOptions{})
	page := s.page(fmt.Sprintf("/tasks/%d", d))
	testkit.Contains(t, page, fmt.Sprintf(`<a href="/tasks/%d" class="state failed"><title>task %[1]d sh, failed`, a),
		`<path class="any"`, fmt.Sprintf(`<g class="state deleted"><title>task %d, deleted`, b),
		fmt.Sprintf(`<a href="/tasks/%d" class="state pending"><title>task %[1]d sh, pending`, c),
		fmt.Sprintf(`<a href="/tasks/%d" class="state blocked"><title>task %[1]d sh, blocked`, e))
	page = s.page(fmt.Sprintf("/tasks/%d", c))
	testkit.Contains(t, page, `lane <a href="/tasks?q=lane%3A%22acct%207%22">acct 7</a>`)
	testkit.Contains(t, s.page("/tasks?q=lane:%22acct%207%22"), fmt.Sprintf(`id="t%d"`, c))
}

func TestLargeResultIsWholeInAPI(t *testing.T) {
	r := open(t)
	double := jobs.DefineResult[string, []string]("double")
	r.Register(double.Handler(func(_ context.Context, in string) ([]string, error) { return []string{in, in}, nil }))
	in := strings.Repeat("x", 70_000)
	runnerkit.Enqueue(t, r, double.With(in))
	runnerkit.Drain(t, r, web1)
	s := serve(t, r, web.ServerOptions{})
	page := s.page("/tasks/1")
	testkit.Contains(t, page, "the first 64 KiB of", `href="/api/v1/tasks/1"`)
	if len(page) > 200_000 {
		t.Errorf("got a page of %d bytes, want at most 200000", len(page))
	}
	testkit.Contains(t, s.page("/api/v1/tasks/1"), `"args":"`+in+`"`, `"result":["`+in+`","`+in+`"]`)
}

const hostile = "<script>alert(1)</script>\x1b]0;x\a\u202eRTL"

func TestHostileTextIsShownAsText(t *testing.T) {
	r := open(t)
	shell(t, r, "printf '<script>alert(2)</script>\\033]0;x\\007\\033[2J\u202eRTL\\n'; exit 1",
		jobs.Label("<img src=x onerror=alert(3)>\u202e"))
	schedule := jobs.Schedule{Name: "s", Cron: "0 3 * * *", Spec: jobs.Command(command.Command{Argv: []string{hostile}}, jobs.Label("<b>"))}
	testkit.NoError(t, r.SetSchedule(t.Context(), schedule))
	boom := jobs.Define[string]("boom", jobs.MaxAttempts(1))
	r.Register(boom.Handler(func(_ context.Context, in string) error { return fmt.Errorf("%s", in) }))
	runnerkit.Enqueue(t, r, boom.With(hostile))
	runnerkit.Drain(t, r, web1)
	s := serve(t, r, web.ServerOptions{})
	for _, path := range []string{"/", "/tasks", "/tasks/1", "/tasks/2", "/schedules", "/tasks?q=%3Cscript%3E%1b%e2%80%ae",
		"/tasks?q=%3Cscript%3Ealert(1)"} {
		page := s.page(path)
		testkit.ContainsNone(t, page, "<script>alert", "<img src=x", "\x1b", "\u202e", "\a", "<b>:")
	}
	testkit.Contains(t, s.page("/tasks/2"), "&lt;script&gt;alert(1)")
	testkit.Contains(t, s.page("/tasks/1"), "&lt;script&gt;alert(2)&lt;/script&gt;", `\u202eRTL`)
	testkit.Contains(t, s.page("/schedules"), `&lt;b&gt;: `)
}

func TestSecretsAreNotShown(t *testing.T) {
	r := open(t)
	c := command.Shell("cat >/dev/null; exit 1")
	c.Env, c.Input = map[string]string{"TOKEN": "marker-env"}, []byte("marker-input")
	runnerkit.Enqueue(t, r, jobs.Command(c))
	testkit.NoError(t, r.SetSchedule(t.Context(), jobs.Schedule{Name: "s", Cron: "0 3 * * *", Spec: jobs.Command(c)}))
	runnerkit.Drain(t, r, web1)
	var log bytes.Buffer // the log needs no lock, because the requests of this test come one after the other
	s := serveEmbedded(t, r, web.Options{Log: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	for _, path := range []string{"/", "/tasks", "/tasks/1", "/schedules", "/tasks?q=marker", "/metrics", "/tasks/1/log",
		"/api/v1/tasks/1"} {
		testkit.ContainsNone(t, s.page(path), "marker-env", "marker-input")
	}
	for path, form := range map[string]url.Values{"/actions/retry": {"id": {"1"}}, "/actions/schedule-run": {"name": {"s"}}} {
		if status, body := s.post(path, form); status != http.StatusOK || strings.Contains(body, "marker-") {
			t.Errorf("%s: got status %d, want 200 without a secret: %s", path, status, body)
		}
	}
	testkit.ContainsNone(t, log.String(), "marker-env", "marker-input")
	testkit.Contains(t, log.String(), "1 task retried") // this line shows that the server writes to the log
	testkit.Contains(t, s.page("/tasks/1"), "env TOKEN=•••", "input 12 B")
}

func TestHiddenArgumentsAreInNoPage(t *testing.T) {
	r := open(t)
	shell(t, r, `echo marker-out; echo '{"x":"marker-result"}' >"$RUNNER_RESULT"; : marker-args; exit 1`, jobs.Label("night"))
	boom := jobs.Define[string]("boom", jobs.MaxAttempts(1))
	r.Register(boom.Handler(func(_ context.Context, in string) error { return fmt.Errorf("marker-error %s", in) }))
	runnerkit.Enqueue(t, r, boom.With("marker-args"))
	stops := jobs.Define[string]("stops")
	r.Register(stops.Handler(func(_ context.Context, in string) error { return jobs.Cancel(errors.New(in)) }))
	runnerkit.Enqueue(t, r, stops.With("marker-cancel"))
	testkit.NoError(t, r.SetSchedule(t.Context(), jobs.Schedule{Name: "s", Cron: "0 3 * * *",
		Spec: jobs.Command(command.Shell("marker-args"))}))
	runnerkit.Drain(t, r, web1)
	s := serve(t, r, web.ServerOptions{Options: web.Options{HideArgs: true}})
	for _, path := range []string{"/", "/tasks", "/tasks/1", "/tasks/2", "/tasks/3", "/schedules", "/tasks/1/log", "/api/v1/tasks",
		"/api/v1/tasks/1", "/api/v1/tasks/2", "/tasks/1/log?attempt=1", "/tasks/1?attempt=1"} {
		_, page := s.get(path)
		testkit.ContainsNone(t, page, "marker-")
	}
	testkit.Contains(t, s.page("/tasks"), "night", "exit 1")
	testkit.Contains(t, s.page("/tasks?q=marker-args"), "arguments are hidden")
	shown := serve(t, r, web.ServerOptions{})
	testkit.Contains(t, shown.page("/tasks/1"), "marker-out", "marker-result", "marker-args") // without HideArgs, the page has the markers
}

// links matches the URLs in a page that a browser follows.
var links = regexp.MustCompile(`(?:href|src|action|formaction)="([^"]*)"`)

// values matches the values of the parameters of a URL.
var values = regexp.MustCompile(`=[^&]*`)

func TestEveryLinkWorksUnderBasePath(t *testing.T) {
	t.Parallel()
	r := open(t)
	shell(t, r, "echo hello; exit 1")
	daily(t, r, "s")
	runnerkit.Drain(t, r, web1)
	for name, s := range map[string]*site{"library": serveEmbedded(t, r, web.Options{BasePath: "/admin/tasks"}),
		"serve":    serve(t, r, web.ServerOptions{Options: web.Options{BasePath: "/x/"}}),
		"stripped": serveStripped(t, r, "/tools/runner")} {
		base := s.url[strings.Index(s.url[8:], "/")+8:]
		todo, seen, visits := []string{base + "/"}, map[string]bool{}, map[string]int{}
		for len(todo) > 0 {
			path := todo[0]
			if todo = todo[1:]; seen[path] {
				continue
			}
			seen[path] = true
			local, ok := strings.CutPrefix(path, base)
			if !ok {
				t.Errorf("%s: got a link to %s, want only links below %s", name, path, base)
				continue
			}
			shape := values.ReplaceAllString(local, "=")
			if visits[shape]++; visits[shape] > 2 || strings.HasPrefix(local, "/actions/") {
				continue // searches and time zones link to each other without end
			}
			status, body := s.get(local)
			if status != http.StatusOK {
				t.Errorf("%s: %s: got status %d, want 200", name, path, status)
			}
			if strings.Contains(local, "/static/") {
				continue
			}
			for _, match := range links.FindAllStringSubmatch(body, -1) {
				link, _, _ := strings.Cut(strings.ReplaceAll(match[1], "&amp;", "&"), "#")
				if link != "" {
					todo = append(todo, link)
				}
			}
		}
		res, err := s.client.Do(s.request("GET", "/events", nil))
		if err != nil || res.Header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("%s: /events: got error %v, want an event stream", name, err)
		}
		res.Body.Close()
		if len(seen) < 12 {
			t.Errorf("%s: got links %v, want at least 12", name, seen)
		}
		if status, body := s.post("/actions/retry", map[string][]string{"id": {"1"}, "back": {base + "/tasks"}}); status != http.StatusOK {
			t.Errorf("%s: got status %d, want 200: %s", name, status, body)
		}
		runnerkit.Drain(t, r, web1)
	}
}

// serveStripped serves the pages behind a proxy that removes the prefix from
// the path of each request, like nginx with a slash at the end of proxy_pass.
func serveStripped(t testing.TB, r *runner.Runner, prefix string) *site {
	t.Helper()
	pages := web.Handler(r, web.Options{BasePath: prefix, Authorize: func(*http.Request) error { return nil }})
	mux := http.NewServeMux()
	mux.Handle(prefix+"/", http.StripPrefix(prefix, pages))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return &site{t: t, url: server.URL + prefix, client: server.Client()}
}

func TestHealth(t *testing.T) {
	r := open(t)
	s := serve(t, r, web.ServerOptions{})
	if status, body := s.get("/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, "no worker was seen") {
		t.Errorf("got status %d, body %q; want 503, no worker was seen", status, body)
	}
	stop := runnerkit.Work(t, r, web1)
	testkit.Eventually(t, "ready", func() bool { status, _ := s.get("/readyz"); return status == http.StatusOK })
	stop()
	if status, _ := s.get("/readyz"); status != http.StatusServiceUnavailable {
		t.Errorf("after the worker has stopped: got status %d, want 503", status)
	}
	if status, body := s.get("/healthz"); status != http.StatusOK || body != "ok\n" {
		t.Errorf("got status %d, body %q; want 200, ok", status, body)
	}
}
