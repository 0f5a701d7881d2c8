package web_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
	"example.com/runner/web"
)

func ids(list ...int64) (texts []string) {
	for _, id := range list {
		texts = append(texts, fmt.Sprint(id))
	}
	return texts
}

func TestSelectionIsRetriedAndDeleted(t *testing.T) {
	r := open(t)
	a, b, c := shell(t, r, "exit 22"), shell(t, r, "exit 3"), shell(t, r, "exit 4")
	runnerkit.Drain(t, r, web1)
	s := serve(t, r, web.ServerOptions{})
	status, body := s.post("/actions/retry", url.Values{"id": ids(a, b), "back": {"/tasks?q=state:failed"}})
	testkit.Contains(t, body, "2 tasks retried", fmt.Sprintf("runner retry %d %d", a, b), `value="state:failed"`)
	if status != http.StatusOK || state(t, r, a) != jobs.Pending || state(t, r, b) != jobs.Pending || state(t, r, c) != jobs.Failed {
		t.Errorf("got status %d, states %s, %s and %s; want 200, pending, pending and failed",
			status, state(t, r, a), state(t, r, b), state(t, r, c))
	}
	testkit.ContainsNone(t, s.page("/tasks"), "2 tasks retried") // a page shows the result only once

	_, body = s.post("/actions/delete", url.Values{"id": ids(c), "back": {"/tasks"}})
	testkit.Contains(t, body, fmt.Sprintf("Delete task %d?", c), fmt.Sprintf("runner delete %d", c), `name="confirmed" value="1"`)
	testkit.Equal(t, "state before the answer to the question", state(t, r, c), jobs.Failed)
	_, body = s.post("/actions/delete", url.Values{"id": ids(c, a, 999), "back": {"/tasks"}, "confirmed": {"1"}})
	testkit.Contains(t, body, "1 task deleted, 2 tasks not deleted", fmt.Sprintf("%d: it is pending", a), "999: there is no such task")
	if state(t, r, c) != "gone" {
		t.Errorf("got state %s, want gone", state(t, r, c))
	}
	_, body = s.post("/actions/cancel", url.Values{"id": ids(a), "back": {"/tasks"}}) // the task is pending, so the page asks no question
	testkit.Contains(t, body, "1 task cancelled")
	for _, bad := range []url.Values{{}, {"id": {"x"}}, {"id": {"1"}, "query": {"state:failed"}}, {"query": {"quue:x"}}} {
		if status, _ := s.post("/actions/retry", bad); status != http.StatusBadRequest {
			t.Errorf("%v: got status %d, want 400", bad, status)
		}
	}
}

func TestRunningTaskIsCancelledAfterQuestion(t *testing.T) {
	r := open(t)
	id := shell(t, r, "sleep 600")
	defer runnerkit.Work(t, r, web1)()
	testkit.Eventually(t, "the task runs", func() bool { return state(t, r, id) == jobs.Running })
	s := serve(t, r, web.ServerOptions{})
	_, body := s.post("/actions/retry", url.Values{"id": ids(id), "back": {"/"}})
	testkit.Contains(t, body, "not retried", "it is running")
	_, body = s.post("/actions/cancel", url.Values{"id": ids(id), "back": {"/tasks"}})
	testkit.Contains(t, body, fmt.Sprintf("Cancel task %d?", id))
	testkit.Equal(t, "state before the answer to the question", state(t, r, id), jobs.Running)
	_, body = s.post("/actions/cancel", url.Values{"id": ids(id), "back": {"/tasks"}, "confirmed": {"1"}})
	testkit.Contains(t, body, "1 task is stopping")
	testkit.Eventually(t, "it stops", func() bool { return state(t, r, id) == jobs.Cancelled })
}

var askedSet = regexp.MustCompile(`name="set" value="([^"]+)"`)

// confirm fills in the form fields that confirm an action, from the page with
// the question.
func confirm(t testing.TB, form url.Values, question string) {
	t.Helper()
	set := askedSet.FindStringSubmatch(question)
	if set == nil {
		t.Fatalf("got a question without a set\n%s", question)
	}
	form.Set("set", set[1])
	form.Set("confirmed", "1")
}

func TestActionChangesOnlyTasksOfItsQuestion(t *testing.T) {
	r := open(t)
	fail := func() (id int64) {
		id = shell(t, r, "echo 'no route to host' >&2; exit 7", jobs.Queue("media"))
		runnerkit.Drain(t, r, web1)
		return id
	}
	old := []int64{fail(), fail(), fail(), fail()}
	s := serve(t, r, web.ServerOptions{})
	group := askedGroup.FindStringSubmatch(s.page("/tasks?q=state:failed&sort=cause"))
	if group == nil {
		t.Fatal("got no group, want one")
	}
	for name, form := range map[string]url.Values{
		"group": {"query": {group[1]}, "back": {"/tasks"}},
		"query": {"query": {"state:failed queue:media"}, "back": {"/tasks"}},
	} {
		_, body := s.post("/actions/retry", form)
		confirm(t, form, body)
		if _, err := r.Delete(t.Context(), old[:1]); err != nil {
			t.Fatal(err)
		}
		added := fail()
		_, body = s.post("/actions/retry", form)
		testkit.Contains(t, body, fmt.Sprintf("%d tasks retried", len(old)-1))
		testkit.Equal(t, name+": state of a task that failed after the question", state(t, r, added), jobs.Failed)
		runnerkit.Drain(t, r, web1)
		old = append(old[1:], added)
	}

	form := url.Values{"query": {"state:failed"}, "back": {"/tasks"}}
	_, body := s.post("/actions/retry", form)
	confirm(t, form, body)
	other := serve(t, r, web.ServerOptions{}) // a server that has restarted does not know the question
	status, body := other.post("/actions/retry", form)
	testkit.Equal(t, "status of a server that does not know the question", status, http.StatusConflict)
	testkit.Contains(t, body, "Nothing was changed: this question is too old.", "Retry 4 tasks: state:failed?")
	_, body = s.post("/actions/retry", form)
	testkit.Contains(t, body, "4 tasks retried")
}

var askedGroup = regexp.MustCompile(`name="query" value="(state:failed cause:[0-9a-f]+)"`)

func TestActionOnSearchAsksFirst(t *testing.T) {
	r := open(t)
	for range 3 {
		shell(t, r, "exit 1", jobs.Queue("media"))
	}
	other := shell(t, r, "exit 1")
	runnerkit.Drain(t, r, web1)
	s := serve(t, r, web.ServerOptions{})
	form := url.Values{"query": {"queue:media since:1d"}, "back": {"/tasks?q=queue:media"}}
	status, body := s.post("/actions/retry", form)
	testkit.Contains(t, body, "Retry 3 tasks: queue:media since:1d?", "runner retry -q media --since 1d",
		`value="queue:media since:1d"`)
	testkit.Equal(t, "status of the question", status, http.StatusOK)
	confirm(t, form, body)
	_, body = s.post("/actions/retry", form)
	testkit.Contains(t, body, "3 tasks retried")
	if state(t, r, other) != jobs.Failed {
		t.Errorf("a task outside the query: got state %s, want failed", state(t, r, other))
	}
	form.Del("set")
	_, body = s.post("/actions/cancel", form)
	testkit.Contains(t, body, "Cancel 3 tasks")
	_, body = s.post("/actions/retry", url.Values{"query": {"state:completed"}, "back": {"/tasks"}})
	testkit.Contains(t, body, "none of these tasks can be retried")
}

func TestQueuesAndSchedulesArePausedAndResumed(t *testing.T) {
	r := open(t)
	daily(t, r, "nightly")
	shell(t, r, "true", jobs.Queue("media"))
	s := serve(t, r, web.ServerOptions{})
	_, body := s.post("/actions/queue-pause", url.Values{"queue": {"media"}, "confirmed": {"1"}, "reason": {"disk is full"}, "back": {"/"}})
	testkit.Contains(t, body, "media paused", "runner pause -q media", "media has been paused", `action="/actions/queue-resume"`)
	if pauses, err := admin.Pauses(t.Context(), r); err != nil || len(pauses) != 1 {
		t.Errorf("got pauses %v, error %v; want one", pauses, err)
	}
	_, body = s.post("/actions/queue-resume", url.Values{"queue": {"media"}, "confirmed": {"1"}, "reason": {"disk is full"}, "back": {"/"}})
	testkit.Contains(t, body, "media resumed")
	_, body = s.post("/actions/queue-pause", url.Values{"queue": {"media"}, "for": {"8h"}, "back": {"/"}})
	testkit.Contains(t, body, `<select id="for" name="for"><option value="">until it is resumed`, `<option value="8h" selected>for 8 hours`)
	_, body = s.post("/actions/queue-pause", url.Values{"queue": {"media"}, "confirmed": {"1"}, "for": {"8h"}, "back": {"/"}})
	testkit.Contains(t, body, "runner pause -q media --for 8h")
	if pauses, err := admin.Pauses(t.Context(), r); err != nil || time.Until(pauses["media"].Until).Round(time.Hour) != 8*time.Hour {
		t.Errorf("got pauses %v, error %v; want one of 8 hours", pauses, err)
	}
	if status, _ := s.post("/actions/queue-pause", url.Values{"queue": {"media"}, "for": {"soon"}}); status != http.StatusBadRequest {
		t.Errorf("an invalid length: got status %d, want 400", status)
	}
	s.post("/actions/queue-resume", url.Values{"queue": {"media"}, "back": {"/"}})
	twoDays := admin.PauseOptions{For: 48 * time.Hour, Reason: "maintenance"}
	testkit.NoError(t, admin.PauseQueues(t.Context(), r, []string{admin.AllQueues}, twoDays))
	page := s.page("/")
	testkit.Contains(t, page, "all queues have been paused", "with 1 task waiting, until 2")
	if !regexp.MustCompile(`title="paused \w+ ago by [^"]+, until 2[-\d]+ [\d:]+: maintenance"`).MatchString(page) {
		t.Error("the queue does not say until when it is paused")
	}
	_, body = s.post("/actions/queue-resume", url.Values{"queue": {""}, "back": {"/"}})
	testkit.Contains(t, body, "all queues resumed", "runner resume --all")

	_, body = s.post("/actions/schedule-run", url.Values{"name": {"nightly"}, "back": {"/schedules"}})
	testkit.Contains(t, body, "task 2 of schedule nightly enqueued", "runner schedule run nightly", `href="/tasks/2"`)
	_, body = s.post("/actions/schedule-pause", url.Values{"name": {"nightly"}, "back": {"/schedules"}})
	testkit.Contains(t, body, "schedule nightly paused", `formaction="/actions/schedule-resume"`)
	_, body = s.post("/actions/schedule-resume", url.Values{"name": {"nightly"}, "back": {"/schedules"}})
	testkit.Contains(t, body, "schedule nightly resumed", `formaction="/actions/schedule-pause"`)
	for form, want := range map[string]int{"name=none": 404, "name=%20": 400, "": 400} {
		values, err := url.ParseQuery(form)
		testkit.NoError(t, err)
		if status, _ := s.post("/actions/schedule-run", values); status != want {
			t.Errorf("%q: got status %d, want %d", form, status, want)
		}
	}
	if status, _ := s.post("/actions/queue-pause", url.Values{}); status != http.StatusBadRequest {
		t.Errorf("without a queue: got status %d, want 400", status)
	}
}

func TestReadOnlyPagesHaveNoForms(t *testing.T) {
	r := open(t)
	id := shell(t, r, "exit 1", jobs.Queue("media"))
	daily(t, r, "nightly")
	runnerkit.Drain(t, r, web1)
	testkit.NoError(t, admin.PauseQueues(t.Context(), r, []string{"media"}, admin.PauseOptions{}))
	s := serve(t, r, web.ServerOptions{Options: web.Options{ReadOnly: true}})
	for _, route := range routes {
		if route.method == "GET" {
			continue
		}
		form := url.Values{"id": ids(id), "queue": {"media"}, "name": {"nightly"}, "confirmed": {"1"}}
		if status, _ := s.post(route.path, form); status != http.StatusForbidden {
			t.Errorf("%s: got status %d, want 403", route.path, status)
		}
	}
	for _, path := range []string{"/", "/tasks", "/tasks?q=state:failed", fmt.Sprintf("/tasks/%d", id), "/schedules"} {
		testkit.ContainsNone(t, s.page(path), `method="post"`, "/actions/", `type="checkbox" name="id"`)
	}
	if state(t, r, id) != jobs.Failed {
		t.Errorf("got state %s, want failed", state(t, r, id))
	}
}

// TestNoGetChangesDatabase checks that GET requests do not change the database.
// It compares SQLite's data_version, which changes with every commit of another
// connection.
func TestNoGetChangesDatabase(t *testing.T) {
	r := open(t)
	id := shell(t, r, "echo hello; exit 1")
	runnerkit.Drain(t, r, web1)
	s := serve(t, r, web.ServerOptions{})
	pool, err := sql.Open("sqlite", "file:"+admin.Path(r)+"?mode=ro")
	testkit.NoError(t, err)
	defer pool.Close()
	pool.SetMaxOpenConns(1)
	version := func() (n int64) {
		testkit.NoError(t, pool.QueryRow("PRAGMA data_version").Scan(&n))
		return n
	}
	before := version()
	paths := []string{"/", "/tasks?q=hello", fmt.Sprintf("/tasks/%d", id), "/schedules", "/healthz", "/readyz", "/login",
		"/actions/retry?id=1&confirmed=1"}
	for _, path := range paths {
		s.get(path)
	}
	if after := version(); after != before {
		t.Errorf("got data_version %d, want %d", after, before)
	}
}

func TestPauseResumeAndFirst(t *testing.T) {
	r := open(t)
	s := serve(t, r, web.ServerOptions{})
	first, id := shell(t, r, "true"), shell(t, r, "true")
	page := fmt.Sprintf("/tasks/%d", id)
	for _, c := range []struct{ action, line, cli, button, missing string }{
		{"pause", "1 task paused", "runner pause 2", ">Resume<", ">Pause<"},
		{"first", "1 task moved to the front", "runner edit --first 2", ">Resume<", ">Pause<"},
		{"resume", "1 task resumed", "runner resume 2", ">Pause<", ">Resume<"},
	} {
		_, body := s.post("/actions/"+c.action, url.Values{"id": ids(id), "back": {page}})
		testkit.Contains(t, body, c.line, c.cli, c.button)
		if strings.Contains(body, c.missing) {
			t.Errorf("after %s: got a page with %q, want none", c.action, c.missing)
		}
	}
	_, body := s.get(page)
	testkit.Contains(t, body, "<li>pause ", "<li>resume ", "<li>first ", "priority 6")
	if got, err := r.Get(t.Context(), id); err != nil || got.Priority != 6 || got.State != jobs.Pending {
		t.Errorf("got task %+v, error %v; want a pending task of priority 6 (task %d has 5)", got, err, first)
	}
}

func TestNoRouteEnqueuesTasks(t *testing.T) {
	r := open(t)
	s := serve(t, r, web.ServerOptions{})
	for _, path := range []string{"/tasks", "/actions/enqueue", "/", "/schedules"} {
		if status, _ := s.post(path, url.Values{"args": {`["true"]`}}); status != http.StatusMethodNotAllowed &&
			status != http.StatusNotFound {
			t.Errorf("%s: got status %d, want 404 or 405", path, status)
		}
	}
	if all, err := db.Of(r).IDs(t.Context(), jobs.Filter{}); err != nil || len(all) > 0 {
		t.Errorf("got tasks %v, error %v; want none", all, err)
	}
	names := []string{}
	for _, route := range routes {
		if name, ok := strings.CutPrefix(route.path, "/actions/"); ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if want := web.Actions(); !slices.Equal(names, want) {
		t.Errorf("got actions %v in routes, want %v", names, want)
	}
}
