package web_test

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/runner/internal/testkit"
	"example.com/runner/internal/testkit/runnerkit"
	"example.com/runner/jobs"
	"example.com/runner/web"
)

func TestFailedTasksAreListedByTheirEndAndWaitingTasksByTheirDueTime(t *testing.T) {
	r := open(t)
	for range 3 {
		shell(t, r, "exit 1")
		runnerkit.Drain(t, r) // the tasks end one after the other, so the order of their ends is known
	}
	if _, err := r.Retry(t.Context(), []int64{1}, 0); err != nil {
		t.Fatal(err)
	}
	runnerkit.Drain(t, r) // task 1 fails last
	for _, in := range []time.Duration{3 * time.Hour, time.Hour, 2 * time.Hour} {
		shell(t, r, "true", jobs.In(in))
	}
	for range 60 {
		shell(t, r, "exit 1", jobs.Queue("many"))
	}
	runnerkit.Drain(t, r)
	s := serve(t, r, web.ServerOptions{})
	rows := func(path string) (list []string, more string) {
		t.Helper()
		page := s.page(path)
		for _, match := range regexp.MustCompile(`<tr id="t(\d+)">`).FindAllStringSubmatch(page, -1) {
			list = append(list, match[1])
		}
		if next := regexp.MustCompile(`rel="next" href="([^"]*)"`).FindStringSubmatch(page); next != nil {
			more = strings.ReplaceAll(next[1], "&amp;", "&")
		}
		return list, more
	}
	for path, want := range map[string]string{"state:failed%20queue:default": "1 3 2", "state:failed%20queue:default&sort=id": "3 2 1",
		"state:scheduled": "5 6 4", "state:scheduled&sort=id": "6 5 4", "state:failed,scheduled%20queue:default": "6 5 4 3 2 1"} {
		if got, _ := rows("/tasks?q=" + path); strings.Join(got, " ") != want {
			t.Errorf("%s: got tasks %v, want %s", path, got, want)
		}
	}
	all, more := rows("/tasks?q=state:failed")
	rest, end := rows(more)
	seen := map[string]bool{}
	for _, id := range append(all, rest...) {
		seen[id] = true
	}
	if len(all) != 50 || len(rest) != 13 || len(seen) != 63 || end != "" {
		t.Errorf("got pages of %d and %d tasks, %d different, then %q; want 50 and 13, 63 and no more", len(all), len(rest), len(seen), end)
	}
	testkit.Contains(t, s.page("/tasks?q=state:scheduled"), ">in 1h")
	if status, _ := s.get("/tasks?q=state:failed&from=x"); status != http.StatusBadRequest {
		t.Errorf("got status %d, want 400", status)
	}
}
