package web_test

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
	"example.com/runner/web"
)

// curl sends a request with the program curl, which shares no code with this
// project. It returns the status and the body.
func curl(t *testing.T, args ...string) (status, body string) {
	t.Helper()
	path, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("curl is not installed; use apt-get install curl")
	}
	args = append([]string{"--silent", "--show-error", "--compressed", "--write-out", "\n%{http_code}"}, args...)
	out, err := exec.Command(path, args...).Output()
	if err != nil {
		t.Fatalf("curl %v: got error %v, want none", args, err)
	}
	text := string(out)
	end := strings.LastIndexByte(text, '\n')
	return text[end+1:], text[:end]
}

func TestAPIWithCurl(t *testing.T) {
	r := open(t)
	for range 3 {
		shell(t, r, "exit 4", jobs.Queue("media"), jobs.Label(`clip "a", b`))
	}
	shell(t, r, "true")
	runnerkit.Drain(t, r, web1)
	s := serve(t, r, webOptions)
	token := "Authorization: Bearer " + s.token

	type list struct {
		Tasks []map[string]any `json:"tasks"`
		Next  string           `json:"next"`
	}
	var ids []float64
	pages := 0
	for next := "/api/v1/tasks?q=state:failed+queue:media&limit=2"; next != ""; pages++ {
		status, body := curl(t, "--header", token, s.url+next)
		testkit.Equal(t, "status", status, "200")
		var page list
		if err := json.Unmarshal([]byte(body), &page); err != nil {
			t.Fatalf("got %q, error %v; want JSON", body, err)
		}
		for _, task := range page.Tasks {
			ids = append(ids, task["id"].(float64))
			testkit.Equal(t, "exit_code", task["exit_code"], any(4.0))
			testkit.Equal(t, "lane", task["lane"], nil)
		}
		next = page.Next
	}
	testkit.Equal(t, "pages", pages, 2)
	if len(ids) != 3 || ids[0] != 3 || ids[2] != 1 {
		t.Errorf("got ids %v, want 3, 2, 1", ids)
	}

	_, body := curl(t, "--header", token, "--get", "--data-urlencode", `q=label:"clip \"a\", b" state:failed`, "--data", "format=csv",
		s.url+"/api/v1/tasks")
	rows, err := csv.NewReader(strings.NewReader(body)).ReadAll()
	if err != nil || len(rows) != 4 || rows[0][0] != "id" || rows[1][4] != `clip "a", b` {
		t.Errorf("got rows %q, error %v; want a line of columns and 3 tasks", rows, err)
	}

	for path, want := range map[string]string{"/api/v1/tasks/4": "200", "/api/v1/tasks/9": "404", "/api/v1/tasks/x": "404",
		"/api/v1/tasks?q=quue:x": "400", "/api/v1/tasks?limit=1001": "400", "/api/v1/tasks?page=2": "400", "/api/v2/tasks": "404",
		"/api/v1/tasks?format=xml": "400"} {
		status, body := curl(t, "--header", token, s.url+path)
		testkit.Equal(t, path, status, want)
		if !json.Valid([]byte(body)) {
			t.Errorf("%s: got %q, want JSON", path, body)
		}
	}
	status, body := curl(t, s.url+"/api/v1/tasks")
	testkit.Equal(t, "status without a token", status, "401")
	testkit.Equal(t, "body without a token", strings.TrimSpace(body), `{"error":"the request has no valid token"}`)
	status, _ = curl(t, "--header", token, "--request", "POST", s.url+"/api/v1/tasks")
	testkit.Equal(t, "status of a POST", status, "405")
}

// TestAPIWithPython uses only the standard library of Python. It reads all
// failed tasks as CSV, page by page. It also makes requests that fail, and
// reads their errors.
func TestAPIWithPython(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed; use apt-get install python3")
	}
	r := open(t)
	for range 5 {
		shell(t, r, "echo 'no space, \"left\"' >&2; exit 1", jobs.Queue("media"))
	}
	runnerkit.Drain(t, r, web1)
	s := serve(t, r, webOptions)
	const program = `
import csv, io, json, re, sys, urllib.error, urllib.request
url, token = sys.argv[1], sys.argv[2]
def get(path, method="GET"):
    request = urllib.request.Request(url + path, headers={"Authorization": "Bearer " + token}, method=method)
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, response.read().decode(), response.headers
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode(), e.headers
next, rows = "/api/v1/tasks?q=state:failed&format=csv&limit=2", []
while next:
    status, body, headers = get(next)
    rows += csv.DictReader(io.StringIO(body))
    found = re.match('<(.*)>; rel="next"', headers.get("Link", ""))
    next = found and found.group(1)
print(len(rows), rows[0]["id"], rows[-1]["id"], rows[0]["exit_code"], rows[0]["error_line"], json.loads(rows[0]["args"])[0])
for path in ["/api/v1/tasks?q=stat:faild", "/api/v1/tasks?q=queue:meda", "/api/v1/tasks/x", "/api/v1/tasks/9", "/api/v1/task",
             "/api/v1/tasks?limit=0"]:
    status, body, headers = get(path)
    answer = json.loads(body)
    print(path, status, headers["Content-Type"], answer.get("error"))
print(get("/api/v1/tasks", "DELETE")[0])
`
	out, err := exec.Command(python, "-c", program, s.url, s.token).CombinedOutput()
	want := `5 5 1 1 no space, "left" /bin/sh
/api/v1/tasks?q=stat:faild 400 application/json search: unknown selector "stat:"; did you mean state:?
/api/v1/tasks?q=queue:meda 200 application/json None
/api/v1/tasks/x 404 application/json there is no task x
/api/v1/tasks/9 404 application/json no task 9
/api/v1/task 404 application/json unknown path; use /api/v1/tasks or /api/v1/tasks/ID
/api/v1/tasks?limit=0 400 application/json limit: invalid number of tasks; use 1 to 1000
405
`
	if err != nil || string(out) != want {
		t.Errorf("got error %v and\n%s\nwant\n%s", err, out, want)
	}
}

func TestAPIHidesArguments(t *testing.T) {
	r := open(t)
	shell(t, r, "echo secret; exit 1")
	runnerkit.Drain(t, r, web1)
	s := serveEmbedded(t, r, web.Options{BasePath: "/x", HideArgs: true})
	status, body := s.get("/api/v1/tasks")
	testkit.Equal(t, "status", status, http.StatusOK)
	testkit.Contains(t, body, `"args":null`, `"error":null`)
	testkit.Contains(t, body, `"error_line":null`)
	if strings.Contains(body, "secret") {
		t.Errorf("got the arguments in %s, want them hidden", body)
	}
}

func TestAPIRefusesWithJSON(t *testing.T) {
	r := open(t)
	s := serveEmbedded(t, r, web.Options{BasePath: "/x", ReadOnly: true})
	status, body := s.post("/api/v1/tasks", nil)
	if status != http.StatusForbidden || !strings.Contains(body, `{"error":"These pages are read-only."`) {
		t.Errorf("read-only: got status %d and %s, want 403 and JSON", status, body)
	}
	denied := httptest.NewServer(web.Handler(r, web.Options{}))
	defer denied.Close()
	status2, text := curl(t, denied.URL+"/api/v1/tasks")
	if status2 != "403" || !strings.HasPrefix(text, `{"error":"access denied`) {
		t.Errorf("without Authorize: got status %s and %s, want 403 and JSON", status2, text)
	}
}

// TestRequestThatServerCutsShortHasNoEmptyAnswer ends the context of a
// request, as a server does that stops.
func TestRequestThatServerCutsShortHasNoEmptyAnswer(t *testing.T) {
	h := web.Handler(open(t), web.Options{Authorize: func(*http.Request) error { return nil }})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, path := range []string{"/api/v1/tasks", "/tasks"} {
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodGet, path, http.NoBody))
		if answer.Code != http.StatusServiceUnavailable || answer.Body.Len() == 0 {
			t.Errorf("%s: got status %d and %q, want 503 and a text", path, answer.Code, answer.Body)
		}
	}
}

// TestErrorPageNeedsNoPath sends a request without a path, as a handler behind
// http.StripPrefix gets it.
func TestErrorPageNeedsNoPath(t *testing.T) {
	h := web.Handler(open(t), web.Options{Authorize: func(*http.Request) error { return nil }, ReadOnly: true, BasePath: "/x"})
	req := httptest.NewRequest(http.MethodPost, "/x", http.NoBody)
	req.URL.Path = ""
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, req)
	testkit.Equal(t, "status", answer.Code, http.StatusForbidden)
}

func TestKeysOfAPIAreDocumented(t *testing.T) {
	text, err := os.ReadFile("../docs/json.md")
	testkit.NoError(t, err)
	r := open(t)
	shell(t, r, "true")
	_, body := serve(t, r, webOptions).get("/api/v1/tasks/1")
	var task map[string]any
	testkit.NoError(t, json.Unmarshal([]byte(body), &task))
	for key := range task {
		if !strings.Contains(string(text), "`"+key+"`") {
			t.Errorf("docs/json.md: got no key %s, want it", key)
		}
	}
}

// TestCSVRunsNoFormulas: a spreadsheet runs a cell that begins with one of
// these characters, and a label or an error line may come from anybody.
func TestCSVRunsNoFormulas(t *testing.T) {
	r := open(t)
	line := 1
	for _, label := range []string{`=HYPERLINK("http://evil.example/","x")`, "+1", "-1+1", "@SUM(A1)", "a=b"} {
		shell(t, r, `printf '%s' '=cmd|A0'; exit 1`, jobs.Label(label), jobs.Priority(-5))
	}
	runnerkit.Drain(t, r, web1)
	s := serve(t, r, webOptions)
	rows, err := csv.NewReader(strings.NewReader(s.page("/api/v1/tasks?format=csv"))).ReadAll()
	testkit.NoError(t, err)
	column := func(name string) int { return slices.Index(rows[0], name) }
	for _, want := range []string{"a=b", "'@SUM(A1)", "'-1+1", "'+1", `'=HYPERLINK("http://evil.example/","x")`} {
		row := rows[line]
		testkit.Equal(t, "label", row[column("label")], want)
		testkit.Equal(t, "error line", row[column("error_line")], "'=cmd|A0")
		testkit.Equal(t, "priority", row[column("priority")], "-5")
		line++
	}
	testkit.Contains(t, s.page("/api/v1/tasks"), `"label":"+1"`) // JSON is for programs
}
