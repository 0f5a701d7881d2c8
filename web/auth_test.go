package web_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
	"example.com/runner/web"
)

// routes are all routes except the streams, which have tests of their own.
var routes = []struct{ method, path string }{
	{"GET", "/"}, {"GET", "/tasks"}, {"GET", "/tasks/1"}, {"GET", "/tasks/1/log"},
	{"GET", "/schedules"}, {"GET", "/metrics"}, {"GET", "/events"}, {"GET", "/nowhere"},
	{"POST", "/actions/retry"}, {"POST", "/actions/cancel"}, {"POST", "/actions/delete"}, {"POST", "/actions/pause"},
	{"POST", "/actions/resume"}, {"POST", "/actions/first"}, {"POST", "/actions/queue-pause"},
	{"POST", "/actions/queue-resume"},
	{"POST", "/actions/schedule-run"}, {"POST", "/actions/schedule-pause"}, {"POST", "/actions/schedule-resume"},
}

func TestRequestsWithoutTokenAreRejected(t *testing.T) {
	r := open(t)
	shell(t, r, "echo secret-marker")
	s := serve(t, r, web.ServerOptions{})
	s.client.Jar = nil
	for _, route := range routes {
		for name, value := range map[string]string{"": "", "Authorization": "Bearer " + strings.Repeat("x", len(s.token)),
			"Cookie": "runner-00000000=x"} {
			req := s.request(route.method, route.path, nil)
			if name != "" {
				req.Header.Set(name, value)
			}
			status, body, header := s.do(req)
			if status != http.StatusUnauthorized || !strings.Contains(body, `name="token"`) || strings.Contains(body, "secret-marker") {
				t.Errorf("%s %s with %s: got status %d, want 401 and the page of the login\n%s", route.method, route.path, name, status,
					body)
			}
			if !strings.Contains(header.Get("Content-Security-Policy"), "default-src 'none'") ||
				header.Get("Cache-Control") != "no-store" ||
				header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Referrer-Policy") != "no-referrer" {
				t.Errorf("%s: got headers %v, want a strict policy, no-store, nosniff and no-referrer", route.path, header)
			}
		}
	}
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503, "/login": 200, "/static/style.css": 200,
		"/static/app.js": 200, "/static/icon.svg": 200, "/static/none": 404} {
		if status, _ := s.get(path); status != want {
			t.Errorf("%s: got status %d, want %d", path, status, want)
		}
	}
	req := s.request("GET", "/tasks", nil)
	req.Header.Set("Authorization", "Bearer "+s.token)
	if status, _, _ := s.do(req); status != http.StatusOK {
		t.Errorf("with the token: got status %d, want 200", status)
	}
}

func TestActionWithoutSessionComesBackToItsPage(t *testing.T) {
	r := open(t)
	id := shell(t, r, "true")
	s := serve(t, r, web.ServerOptions{})
	s.client.Jar = nil
	status, page := s.post("/actions/cancel", url.Values{"id": {fmt.Sprint(id)}, "back": {"/tasks/1?attempt=1"}})
	testkit.Equal(t, "status", status, http.StatusUnauthorized)
	testkit.Contains(t, page, `name="next" value="/tasks/1?attempt=1"`)
	testkit.Equal(t, "state", state(t, r, id), jobs.Pending)
}

func TestTokenIsExchangedForCookie(t *testing.T) {
	r := open(t)
	s := serve(t, r, web.ServerOptions{PublicURL: "https://runner.example.com"})
	if got := s.url; got != "https://runner.example.com" {
		t.Fatalf("got address %s, want https://runner.example.com", got)
	}
	// The name of PublicURL cannot be resolved here, so the next requests use
	// the address of the server.
	s = serve(t, r, web.ServerOptions{})
	s.client.Jar = nil
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	login := func(token, next string) (*http.Response, int) {
		req := s.request("POST", "/login", strings.NewReader(url.Values{"token": {token}, "next": {next}}.Encode()))
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		res, err := s.client.Do(req)
		testkit.NoError(t, err)
		res.Body.Close()
		return res, res.StatusCode
	}
	if _, status := login("wrong", "/"); status != http.StatusUnauthorized {
		t.Errorf("with a wrong token: got status %d, want 401", status)
	}
	for next, want := range map[string]string{"/tasks?q=a%20b": "/tasks?q=a%20b", "": "/", "//evil.com/": "/",
		"https://evil.com/": "/", `/\evil.com`: "/",
		"/login": "/", "javascript:alert(1)": "/", "/tasks#x": "/tasks"} {
		res, status := login(s.token, next)
		if status != http.StatusSeeOther || res.Header.Get("Location") != want {
			t.Errorf("next %q: got status %d, location %q; want 303, %q", next, status, res.Header.Get("Location"), want)
		}
		cookies := res.Cookies()
		if len(cookies) != 1 {
			t.Fatalf("got cookies %v, want one", cookies)
		}
		c := cookies[0]
		testkit.Equal(t, "http only", c.HttpOnly, true)
		testkit.Equal(t, "same site", c.SameSite, http.SameSiteStrictMode)
		testkit.Equal(t, "secure", c.Secure, false)
		testkit.Equal(t, "path", c.Path, "/")
		if c.Value == s.token {
			t.Error("got the token as the value of the cookie, want another value")
		}
	}
}

func TestUnknownHostIsRejected(t *testing.T) {
	r := open(t)
	s := serve(t, r, web.ServerOptions{})
	u, err := url.Parse(s.url)
	testkit.NoError(t, err)
	for _, route := range append(routes, []struct{ method, path string }{{"GET", "/login"}, {"POST", "/login"}, {"GET", "/api/v1/tasks"},
		{"POST", "/api/"}}...) {
		for _, host := range []string{"evil.com:" + u.Port(), "evil.com", "127.0.0.1:1", "127.0.0.2:" + u.Port(),
			"127.0.0.1." + "evil.com:" + u.Port(), ""} {
			req := s.request(route.method, route.path, nil)
			req.Header.Set("Authorization", "Bearer "+s.token)
			if req.Host = host; host == "" {
				req.Host = " " // net/http would replace an empty host by the address of the server
			}
			status, body, header := s.do(req)
			if status != http.StatusForbidden {
				t.Errorf("%s %s to %q: got status %d, want 403", route.method, route.path, host, status)
			}
			if got := header.Get("Content-Type"); strings.HasPrefix(route.path, "/api/") && (!strings.HasPrefix(got, "application/json") ||
				!strings.HasPrefix(body, `{"error":"unknown host`)) {
				t.Errorf("%s %s to %q: got type %s and %s, want JSON", route.method, route.path, host, got, body)
			}
		}
	}
	for _, host := range []string{"localhost:" + u.Port(), "LocalHost:" + u.Port(), u.Host} {
		req := s.request("GET", "/tasks", nil)
		req.Host = host
		req.Header.Set("Authorization", "Bearer "+s.token)
		if status, _, _ := s.do(req); status != http.StatusOK {
			t.Errorf("%q: got status %d, want 200", host, status)
		}
	}
}

func TestRequestsFromAnotherSiteAreRejected(t *testing.T) {
	r := open(t)
	id := shell(t, r, "exit 1")
	runnerkit.Drain(t, r, web1)
	for name, s := range map[string]*site{"serve": serve(t, r, web.ServerOptions{}),
		"library": serveEmbedded(t, r, web.Options{BasePath: "/admin"})} {
		for header, value := range map[string]string{"Origin": "http://evil.com", "Sec-Fetch-Site": "cross-site"} {
			for _, route := range routes {
				if route.method == "GET" {
					continue
				}
				req := s.request("POST", route.path, strings.NewReader("id=1&queue=default&name=x&confirmed=1"))
				req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				req.Header.Set(header, value)
				if status, _, _ := s.do(req); status != http.StatusForbidden {
					t.Errorf("%s %s: got status %d, want 403", name, route.path, status)
				}
			}
		}
	}
	if got := state(t, r, id); got != jobs.Failed {
		t.Errorf("got state %s, want failed", got)
	}
}

func TestHandlerWithoutAuthorizeServesNothing(t *testing.T) {
	r := open(t)
	refuse := func(*http.Request) error { return errors.New("secret reason") }
	for name, authorize := range map[string]func(*http.Request) error{"nil": nil, "refused": refuse} {
		server := &site{t: t, client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
		mux := http.NewServeMux()
		mux.Handle("/", web.Handler(r, web.Options{Authorize: authorize}))
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		testkit.NoError(t, err)
		go http.Serve(listener, mux)
		defer listener.Close()
		server.url = "http://" + listener.Addr().String()
		for _, route := range append(routes, struct{ method, path string }{"GET", "/static/app.js"}) {
			status, body, _ := server.do(server.request(route.method, route.path, nil))
			if status != http.StatusForbidden || strings.Contains(body, "secret reason") || name == "nil" &&
				!strings.Contains(body, "Authorize") {
				t.Errorf("%s: %s: got status %d, want 403 without the reason: %s", name, route.path, status, body)
			}
		}
		if status, _, _ := server.do(server.request("GET", "/healthz", nil)); status != http.StatusOK {
			t.Errorf("%s: /healthz: got status %d, want 200, which needs no Authorize", name, status)
		}
	}
}

func TestAddressesThatOtherMachinesReachAreRejected(t *testing.T) {
	r := open(t)
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.com:80", "8484"} {
		if s, err := web.Listen(r, web.ServerOptions{Listen: address}); !errors.Is(err, jobs.ErrInvalid) {
			t.Errorf("%s: got server %v, error %v; want %v", address, s, err, jobs.ErrInvalid)
		}
	}
	if _, err := web.Listen(r, web.ServerOptions{Listen: "127.0.0.1:0", NoToken: true}); !errors.Is(err, jobs.ErrInvalid) {
		t.Errorf("NoToken with an IP address: got error %v, want %v", err, jobs.ErrInvalid)
	}
	if _, err := web.Listen(r, web.ServerOptions{Listen: "127.0.0.1:0", PublicURL: "runner.example.com"}); !errors.Is(err,
		jobs.ErrInvalid) {
		t.Errorf("PublicURL without a scheme: got error %v, want %v", err, jobs.ErrInvalid)
	}
}

func TestOnlyItsOwnerCanUseUnixSocket(t *testing.T) {
	r := open(t)
	socket := filepath.Join(t.TempDir(), "ui.sock")
	s := &site{t: t, url: "http://localhost", client: &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", socket)
		}}}}
	t.Cleanup(s.client.CloseIdleConnections)
	start(t, r, web.ServerOptions{Listen: "unix:" + socket, NoToken: true})
	info, err := os.Stat(socket)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, error %v; want 0600", info.Mode(), err)
	}
	s.page("/tasks")
	req := s.request("GET", "/tasks", nil)
	req.Host = "evil.com"
	if status, _, _ := s.do(req); status != http.StatusForbidden {
		t.Errorf("another host: got status %d, want 403", status)
	}
	if _, err := web.Listen(r, web.ServerOptions{Listen: "unix:" + socket}); err == nil ||
		!strings.Contains(err.Error(), "another process") {
		t.Errorf("second Listen on the socket: got error %v, want \"another process\"", err)
	}
}

func TestUnsafeTokenFileIsRejected(t *testing.T) {
	r := open(t)
	file := filepath.Join(t.TempDir(), "token")
	token, err := db.Of(r).Token(file)
	if err != nil || len(token) != 26 {
		t.Fatalf("got a token of %d bytes, error %v; want 26 bytes", len(token), err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, error %v; want 0600", info.Mode(), err)
	}
	if again, err := db.Of(r).Token(file); again != token || err != nil {
		t.Errorf("second call: got token %q, error %v; want the same token", again, err)
	}
	testkit.NoError(t, os.Chmod(file, 0o644))
	if _, err := db.Of(r).Token(file); !errors.Is(err, jobs.ErrPermission) {
		t.Errorf("a file that others may read: got error %v, want %v", err, jobs.ErrPermission)
	}
	link := filepath.Join(t.TempDir(), "link")
	testkit.NoError(t, os.Symlink(file, link))
	if _, err := db.Of(r).Token(link); !errors.Is(err, jobs.ErrPermission) {
		t.Errorf("a symbolic link: got error %v, want %v", err, jobs.ErrPermission)
	}
	if os.Getuid() == 0 { // only root can test that the server rejects a file of another user
		planted := filepath.Join(t.TempDir(), "token")
		testkit.NoError(t, errors.Join(os.WriteFile(planted, []byte(token), 0o600), os.Chown(planted, 65534, 65534)))
		if _, err := db.Of(r).Token(planted); !errors.Is(err, jobs.ErrPermission) {
			t.Errorf("a file of another user: got error %v, want %v", err, jobs.ErrPermission)
		}
	}
	for mode, want := range map[os.FileMode]error{0o777: jobs.ErrPermission, 0o777 | os.ModeSticky: nil, 0o755: nil} {
		dir := filepath.Join(t.TempDir(), "open")
		testkit.NoError(t, errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, mode)))
		if _, err := db.Of(r).Token(filepath.Join(dir, "token")); !errors.Is(err, want) {
			t.Errorf("a directory of mode %v: got error %v, want %v", mode, err, want)
		}
		if _, err := os.Stat(filepath.Join(dir, "token")); (err == nil) != (want == nil) {
			t.Errorf("a directory of mode %v: stat of the token file: got error %v, want a file: %v", mode, err, want == nil)
		}
	}
	short := filepath.Join(t.TempDir(), "short")
	testkit.NoError(t, os.WriteFile(short, []byte("hunter2\n"), 0o600))
	if _, err := db.Of(r).Token(short); !errors.Is(err, jobs.ErrInvalid) {
		t.Errorf("a short token: got error %v, want %v", err, jobs.ErrInvalid)
	}
}
