package web_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/web"
)

func TestOverviewShowsActionWhenManyTasksArePending(t *testing.T) {
	r := open(t)
	many(t, r, 100_000, func(int) jobs.Spec { return jobs.Shell("true").With(jobs.Queue("media")) })
	s := serve(t, r, webOptions)
	testkit.Equal(t, "a count outlasts its page", countedTooLate(t, r), true)
	testkit.Contains(t, s.page("/"), "100,000", "Pause media")
	_, body := s.post("/actions/queue-pause", url.Values{"queue": {"media"}, "confirmed": {"1"}, "back": {"/"}})
	testkit.Contains(t, body, "Resume media")
	_, body = s.post("/actions/cancel", url.Values{"id": {"1", "2", "3"}, "back": {"/"}})
	testkit.Contains(t, body, "3 tasks cancelled", "99,997")
	_, body = s.post("/actions/retry", url.Values{"id": {"2", "3"}, "back": {"/"}})
	testkit.Contains(t, body, "2 tasks retried", "99,999")
	testkit.Contains(t, s.page("/tasks/100000"), "Why")
}

// countedTooLate requests an overview that has no time left, and reports
// whether the next one could use its count.
func countedTooLate(t *testing.T, r *runner.Runner) bool {
	t.Helper()
	h := web.Handler(r, web.Options{Authorize: func(*http.Request) error { return nil }})
	web.SetReadTimeout(time.Nanosecond)
	defer web.SetReadTimeout(time.Minute)
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody))
	testkit.Equal(t, "status", answer.Code, http.StatusServiceUnavailable)
	return web.HasCounts(h)
}
