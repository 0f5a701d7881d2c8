package web_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
	"example.com/runner/web"
)

func TestFailedTasksAreListedByTheirEndAndWaitingTasksByTheirDueTime(t *testing.T) {
	r := open(t)
	for range 3 {
		shell(t, r, "exit 1")
		runnerkit.Drain(t, r, web1) // the tasks end one after the other, so the order of their ends is known
	}
	if _, err := r.Retry(t.Context(), []int64{1}, runner.RetryOptions{}); err != nil {
		t.Fatal(err)
	}
	runnerkit.Drain(t, r, web1) // task 1 fails last
	for _, in := range []time.Duration{3 * time.Hour, time.Hour, 2 * time.Hour} {
		shell(t, r, "true", jobs.In(in))
	}
	for range 60 {
		shell(t, r, "exit 1", jobs.Queue("many"))
	}
	runnerkit.Drain(t, r, web1)
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
	failed := s.page("/tasks?q=state:failed%20queue:default")
	testkit.Contains(t, failed, `href="/api/v1/tasks?q=state%3Afailed%20queue%3Adefault&amp;sort=ended"`)
	for path, want := range map[string]string{"state:failed%20queue:default&sort=ended": "1 3 2", "state:failed%20queue:default": "3 2 1",
		"state:scheduled&sort=due": "5 6 4"} {
		if got := apiIDs(t, s, "/api/v1/tasks?limit=2&q="+path); strings.Join(got, " ") != want {
			t.Errorf("API, %s: got tasks %v, want %s", path, got, want)
		}
	}
	for _, path := range []string{"q=state:failed&sort=due", "q=state:failed&sort=cause", "q=state:failed&sort=x", "sort=ended",
		"q=state:failed&sort=ended&from=3", "q=state:failed&from=1.3"} {
		if status, _ := s.get("/api/v1/tasks?" + path); status != http.StatusBadRequest {
			t.Errorf("API, %s: got status %d, want 400", path, status)
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

// apiIDs returns the ids of all tasks of a search. It requests the first page
// of the list, and then each next page.
func apiIDs(t *testing.T, s *site, path string) (ids []string) {
	t.Helper()
	for path != "" {
		var part struct {
			Tasks []struct {
				ID int64 `json:"id"`
			} `json:"tasks"`
			Next string `json:"next"`
		}
		if err := json.Unmarshal([]byte(s.page(path)), &part); err != nil {
			t.Fatalf("%s: got error %v, want JSON", path, err)
		}
		for _, task := range part.Tasks {
			ids = append(ids, strconv.FormatInt(task.ID, 10))
		}
		path = part.Next
	}
	return ids
}
