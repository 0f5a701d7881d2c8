package web_test

import (
	"net/url"
	"testing"

	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

func TestOverviewShowsActionWhenManyTasksArePending(t *testing.T) {
	r := open(t)
	specs := func(yield func(jobs.Spec) bool) {
		for range 100_000 {
			if !yield(jobs.Shell("true").With(jobs.Queue("media"))) {
				return
			}
		}
	}
	if _, err := r.EnqueueAll(t.Context(), specs); err != nil {
		t.Fatal(err)
	}
	s := serve(t, r, webOptions)
	testkit.Contains(t, s.page("/"), "100,000", "Pause media")
	_, body := s.post("/actions/queue-pause", url.Values{"queue": {"media"}, "confirmed": {"1"}, "back": {"/"}})
	testkit.Contains(t, body, "Resume media")
	_, body = s.post("/actions/cancel", url.Values{"id": {"1", "2", "3"}, "back": {"/"}})
	testkit.Contains(t, body, "3 tasks cancelled", "99,997")
	_, body = s.post("/actions/retry", url.Values{"id": {"2", "3"}, "back": {"/"}})
	testkit.Contains(t, body, "2 tasks retried", "99,999")
	testkit.Contains(t, s.page("/tasks/100000"), "Why")
}
