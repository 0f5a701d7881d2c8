package web_test

import (
	"fmt"
	"html"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// linkedNumbers matches a number on the overview that is a link to a list of
// tasks: in a tile, in a table and in a problem.
var linkedNumbers = []*regexp.Regexp{
	regexp.MustCompile(`<a class="tile[^"]*" href="([^"]*)"[^>]*><span>[^<]*</span><b>([0-9,]+)</b>`),
	regexp.MustCompile(`<td class="n[^"]*">(?:<small[^>]*>[^<]*</small> )?<a [^>]*href="([^"]*)">([0-9,]+)</a></td>`),
	regexp.MustCompile(`(?s)<p>([0-9,]+) tasks? failed in [^<]*(?:<span class="cause">[^<]*</span>)?</p>\s*` +
		`<a class="button" href="([^"]*)"`),
}

func TestEveryNumberIsThatOfItsList(t *testing.T) {
	r := open(t)
	for n := range 6 {
		shell(t, r, fmt.Sprintf("exit %d", n%2+1), jobs.Queue([]string{"mail", "media"}[n%2]))
	}
	for range 3 { // each round lets the tasks fail once
		runnerkit.Drain(t, r, web1)
		if _, err := r.Retry(t.Context(), []int64{1, 2, 3, 4}, runner.RetryOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	runnerkit.Drain(t, r, web1)
	if _, err := r.Retry(t.Context(), []int64{1}, runner.RetryOptions{}); err != nil { // pending, although it failed before
		t.Fatal(err)
	}
	shell(t, r, "exit 1", jobs.Queue("mail"), jobs.In(time.Hour))
	parent := shell(t, r, "true", jobs.Queue("media"))
	shell(t, r, "true", jobs.Queue("media"), jobs.DependsOn(parent))
	testkit.NoError(t, admin.PauseQueues(t.Context(), r, []string{"media", "empty"}, admin.PauseOptions{Reason: "disk is full"}))
	s := serve(t, r, webOptions)
	page := s.page("/")
	testkit.Contains(t, page, `<b>5</b> <small>· 18 failures</small>`, "3 tasks failed in media in 24h", "2 tasks failed in mail in 24h",
		"with 1 task waiting: disk is full", "no worker runs, and 4 tasks are unfinished")
	// leave out the chart: if a task has failed twice, the chart counts both
	// failures
	chart := regexp.MustCompile(`(?s)<section class="panel" id="chart".*?</section>`)
	page = chart.ReplaceAllString(page, "")
	checked := 0
	for i, re := range linkedNumbers {
		for _, match := range re.FindAllStringSubmatch(page, -1) {
			link, number := match[1], match[2]
			if i == 2 {
				link, number = number, link
			}
			list := s.page(html.UnescapeString(link))
			rows := strings.Count(list, `<tr id="t`)
			for _, group := range regexp.MustCompile(`([0-9]+) ×</a></th>`).FindAllStringSubmatch(list, -1) {
				n, _ := strconv.Atoi(group[1])
				rows += n
			}
			testkit.Equal(t, link, number, fmt.Sprint(rows))
			checked++
		}
	}
	if checked < 12 {
		t.Errorf("got %d numbers with links, want at least 12", checked)
	}
	failures, pause := strings.Index(page, "tasks failed in"), strings.Index(page, "has been paused")
	if failures > pause {
		t.Errorf("got failures at %d and a pause at %d, want failures first", failures, pause)
	}
}

func TestPausesNeverHideFailures(t *testing.T) {
	r := open(t)
	shell(t, r, "exit 1")
	runnerkit.Drain(t, r, web1)
	for n := range 20 {
		testkit.NoError(t, admin.PauseQueues(t.Context(), r, []string{fmt.Sprintf("empty-%02d", n)}, admin.PauseOptions{}))
	}
	page := serve(t, r, webOptions).page("/")
	testkit.Contains(t, page, "1 task failed in default in 24h", "and 15 more: <code>runner status</code>")
}

func TestPauseAsksForItsReason(t *testing.T) {
	r := open(t)
	shell(t, r, "true", jobs.Queue("media"))
	s := serve(t, r, webOptions)
	_, body := s.post("/actions/queue-pause", map[string][]string{"queue": {"media"}, "back": {"/"}})
	testkit.Contains(t, body, "Pause media?", `name="reason"`)
	_, body = s.post("/actions/queue-pause", map[string][]string{"queue": {"media"}, "back": {"/"}, "confirmed": {"1"},
		"reason": {"disk is full"}})
	testkit.Contains(t, body, "media paused", "runner pause -q media --reason &#39;disk is full&#39;", "with 1 task waiting: disk is full")
	pauses, err := admin.Pauses(t.Context(), r)
	testkit.Equal(t, "error", err, nil)
	testkit.Equal(t, "reason", pauses["media"].Reason, "disk is full")
	id := shell(t, r, "true")
	_, body = s.post("/actions/cancel", map[string][]string{"id": {fmt.Sprint(id)}, "ask": {"1"}, "back": {"/"}})
	testkit.Contains(t, body, "Cancel task 2?", `name="reason"`)
	_, body = s.post("/actions/cancel", map[string][]string{"id": {fmt.Sprint(id)}, "confirmed": {"1"}, "reason": {"a mistake"},
		"back": {"/"}})
	testkit.Contains(t, body, "1 task cancelled", "runner cancel 2 --reason &#39;a mistake&#39;")
}
