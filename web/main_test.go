package web_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/runner/commands"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
	"example.com/runner/web"
)

// TestMain runs the tests in UTC, whatever the zone of the machine is. It lets
// pages and double clicks take long, because the race detector is slow.
func TestMain(m *testing.M) {
	if commands.Guardian() {
		return
	}
	if err := os.Setenv("TZ", "UTC"); err != nil { // the zone of the browser
		panic(err)
	}
	time.Local = time.UTC // the zone of the server
	web.SetReadTimeout(time.Minute)
	web.SetDoubleClick(time.Minute)
	web.SetKeepAlive(time.Second)
	goleak.VerifyTestMain(testkit.NoOpenFiles(withChromium{m}))
}

var web1 = runner.WorkOptions{Concurrency: 2, Name: "web1:811"}

func open(t testing.TB) *runner.Runner {
	t.Helper()
	r := runnerkit.Open(t, runner.Options{Sync: runner.SyncNormal})
	r.Register(commands.Handler(commands.Options{}))
	return r
}

// shell enqueues a shell script.
func shell(t testing.TB, r *runner.Runner, script string, options ...jobs.Option) int64 {
	t.Helper()
	task, err := r.Enqueue(context.Background(), jobs.Command(command.Shell(script), options...))
	testkit.NoError(t, err)
	return task.ID
}

// many enqueues n tasks and returns their ids.
func many(t testing.TB, r *runner.Runner, n int, spec func(i int) jobs.Spec) (ids []int64) {
	t.Helper()
	list, err := r.EnqueueSeq(context.Background(), func(yield func(jobs.Spec) bool) {
		for i := 0; i < n && yield(spec(i)); i++ {
		}
	})
	testkit.NoError(t, err)
	for _, e := range list {
		ids = append(ids, e.ID)
	}
	return ids
}

// daily adds a schedule that runs true at three o'clock.
func daily(t testing.TB, r *runner.Runner, name string) {
	t.Helper()
	s := jobs.Schedule{Name: name, Cron: "0 3 * * *", Spec: jobs.Command(command.Shell("true"))}
	testkit.NoError(t, r.SetSchedule(context.Background(), s))
}

func state(t testing.TB, r *runner.Runner, id int64) jobs.State {
	t.Helper()
	task, err := r.Get(context.Background(), id)
	if errors.Is(err, jobs.ErrNotFound) {
		return "gone"
	}
	testkit.NoError(t, err)
	return task.State
}

// site is a server with a client that has signed in.
type site struct {
	t      testing.TB
	url    string // URL of the server, without a slash at the end
	token  string
	client *http.Client
}

// serve starts the server of "runner serve" and signs in.
func serve(t testing.TB, r *runner.Runner, o web.ServerOptions) *site {
	t.Helper()
	server := start(t, r, o)
	address, token, _ := strings.Cut(server.URL(), "#t=")
	jar, err := cookiejar.New(nil)
	testkit.NoError(t, err)
	s := &site{t: t, url: strings.TrimSuffix(address, "/"), token: token, client: &http.Client{Jar: jar}}
	t.Cleanup(s.client.CloseIdleConnections)
	if strings.HasPrefix(address, "https:") {
		return s
	}
	if status, _ := s.post("/login", url.Values{"token": {token}}); status != http.StatusOK {
		t.Fatalf("sign in: got status %d, want 200", status)
	}
	return s
}

// start starts the server of "runner serve".
func start(t testing.TB, r *runner.Runner, o web.ServerOptions) *web.Server {
	t.Helper()
	if o.Listen == "" {
		o.Listen = "127.0.0.1:0"
	}
	server, err := web.Listen(r, o)
	testkit.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Serve: got error %v, want none", err)
		}
	})
	return server
}

// serveEmbedded serves the pages with web.Handler, as a program with its own
// authentication does.
func serveEmbedded(t testing.TB, r *runner.Runner, o web.Options) *site {
	t.Helper()
	o.Authorize = func(*http.Request) error { return nil }
	mux := http.NewServeMux()
	mux.Handle(strings.TrimSuffix(o.BasePath, "/")+"/", web.Handler(r, o))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	jar, err := cookiejar.New(nil)
	testkit.NoError(t, err)
	return &site{t: t, url: server.URL + strings.TrimSuffix(o.BasePath, "/"), client: &http.Client{Jar: jar}}
}

func (s *site) do(req *http.Request) (int, string, http.Header) {
	s.t.Helper()
	res, err := s.client.Do(req)
	testkit.NoError(s.t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	testkit.NoError(s.t, err)
	return res.StatusCode, string(body), res.Header
}

func (s *site) request(method, path string, body io.Reader) *http.Request {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, body)
	testkit.NoError(s.t, err)
	return req
}

func (s *site) get(path string) (int, string) {
	s.t.Helper()
	status, body, _ := s.do(s.request(http.MethodGet, path, nil))
	return status, body
}

// post sends a form as a browser does, and follows redirects.
func (s *site) post(path string, form url.Values) (int, string) {
	s.t.Helper()
	req := s.request(http.MethodPost, path, strings.NewReader(form.Encode()))
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Sec-Fetch-Site", "same-origin")
	status, body, _ := s.do(req)
	return status, body
}

// page returns the body of a page. It fails the test if the page does not
// exist.
func (s *site) page(path string) string {
	s.t.Helper()
	status, body := s.get(path)
	if status != http.StatusOK {
		s.t.Fatalf("%s: got status %d, want 200\n%s", path, status, body)
	}
	return body
}

func touch(t testing.TB, path string) {
	t.Helper()
	testkit.NoError(t, os.WriteFile(path, nil, 0o600))
}
