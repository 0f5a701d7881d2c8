package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/test/testkit"
	"example.com/runner/web"
)

// openToAll are the options of a Handler that asks for no token.
var openToAll = web.Options{Authorize: func(*http.Request) error { return nil }}

func TestOverviewShowsActionWhenManyTasksArePending(t *testing.T) {
	r := open(t)
	many(t, r, 100_000, func(int) jobs.Spec { return jobs.Command(command.Shell("true"), jobs.Queue("media")) })
	s, h := serve(t, r, webOptions), web.Handler(r, openToAll)
	testkit.Equal(t, "status after a slow count", getStatus(t, web.LateOverview(h)), http.StatusOK)
	testkit.Equal(t, "pages share the count", web.HasCounts(h), true)
	testkit.Contains(t, s.page("/"), "100,000", "Pause media")
	_, body := s.post("/actions/queue-pause", url.Values{"queue": {"media"}, "confirmed": {"1"}, "back": {"/"}})
	testkit.Contains(t, body, "Resume media")
	_, body = s.post("/actions/cancel", url.Values{"id": {"1", "2", "3"}, "back": {"/"}})
	testkit.Contains(t, body, "3 tasks cancelled", "99,997")
	_, body = s.post("/actions/retry", url.Values{"id": {"2", "3"}, "back": {"/"}})
	testkit.Contains(t, body, "2 tasks retried", "99,999")
	testkit.Contains(t, s.page("/tasks/100000"), "Why")
}

func TestPagesShareSlowCountOfFewTasks(t *testing.T) {
	h := web.Handler(open(t), openToAll)
	testkit.Equal(t, "status", getStatus(t, h), http.StatusOK)
	testkit.Equal(t, "pages share a quick count", web.HasCounts(h), false)

	web.SetReadTimeout(time.Nanosecond)
	defer web.SetReadTimeout(time.Minute)
	getStatus(t, h)
	testkit.Equal(t, "pages share a slow count", web.HasCounts(h), true)
}

func getStatus(t *testing.T, h http.Handler) int {
	t.Helper()
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody))
	return answer.Code
}
