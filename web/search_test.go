package web_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"

	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
	"example.com/runner/web"
)

func TestEachPartOfSearchCanBeRemoved(t *testing.T) {
	r := open(t)
	s := serve(t, r, webOptions)
	page := s.page(`/tasks?q=state:failed+queue:media+"no+space"`)
	testkit.Contains(t, page,
		`href="/tasks?q=queue%3Amedia%20%22no%20space%22"><span class="hidden">Remove </span>state:failed `,
		`href="/tasks?q=state%3Afailed%20%22no%20space%22"><span class="hidden">Remove </span>queue:media `,
		`href="/tasks?q=state%3Afailed%20queue%3Amedia"><span class="hidden">Remove </span>&#34;no space&#34; `)
	testkit.Contains(t, s.page("/tasks?q=state:failed"), `href="/tasks"><span class="hidden">Remove </span>state:failed `)
	testkit.ContainsNone(t, s.page("/tasks"), `class="terms"`)
}

// TestSearchSaysAtHowManyTasksItHasLooked makes searches that look at two tasks
// only, and follows their links to searches that look at 20.
func TestSearchSaysAtHowManyTasksItHasLooked(t *testing.T) {
	web.LookAt(t, 2)
	r := open(t)
	for i := range 7 {
		shell(t, r, fmt.Sprint("echo needle >&2; exit ", 1+i%2), jobs.Label(fmt.Sprint("l", i)))
		runnerkit.Drain(t, r, web1) // the tasks end one after the other, so the order of their ends is known
	}
	s := serve(t, r, webOptions)
	// the first query sorts its tasks by id, the second by the time at which
	// they ended
	for _, query := range []string{"label:l0", "state:failed+label:l0"} {
		page := s.page("/tasks?q=" + query)
		testkit.Contains(t, page, "None of the 2 tasks at which the search has looked matches.")
		_, link, _ := strings.Cut(page, `matches. <a href="`)
		link, _, _ = strings.Cut(link, `"`)
		page = s.page(strings.ReplaceAll(link, "&amp;", "&"))
		testkit.Contains(t, page, `id="t1"`)
		testkit.ContainsNone(t, page, "has looked", `id="t2"`)
	}
	page := s.page("/tasks?q=needle")
	testkit.Contains(t, page, "2 of the 2 tasks at which the search has looked <a href=", "Retry all matching…", `id="t7"`, `id="t6"`)
}

func TestTaskListLinksToItsJSONAndCSV(t *testing.T) {
	r := open(t)
	id := shell(t, r, "true", jobs.Queue("media"))
	shell(t, r, "true", jobs.Queue("mail"))
	s := serve(t, r, webOptions)
	testkit.Contains(t, s.page("/tasks?q=queue:media"), `<a class="button" href="/api/v1/tasks?q=queue%3Amedia">as JSON</a>`,
		`<a class="button" href="/api/v1/tasks?q=queue%3Amedia&amp;format=csv">as CSV</a>`)
	for _, format := range []string{"", "&format=csv"} { // a browser that has signed in needs no bearer token
		text := s.page("/api/v1/tasks?q=queue%3Amedia" + format)
		testkit.Contains(t, text, fmt.Sprint(id), "media")
		testkit.ContainsNone(t, text, "mail")
	}
}

func TestSearchForIDOpensTask(t *testing.T) {
	r := open(t)
	for range 12 {
		shell(t, r, "echo 12")
	}
	s := serve(t, r, webOptions)
	for _, query := range []string{"12", "%2312", "id:12", "%20012%20"} {
		testkit.Contains(t, s.page("/tasks?q="+query), `<span class="dim">Task 12</span>`)
	}
	testkit.Contains(t, s.page("/tasks?q=id:99"), "There is no task 99. ", "No task matches.")
	testkit.Contains(t, s.page("/tasks?q=99"), "There is no task 99. ")
	testkit.Contains(t, s.page(`/tasks?q="12"`), `id="t1"`, "Remove </span>12 ") // in quotes, it is a text
	page := s.page("/tasks?q=id:3,7%20state:pending")
	testkit.Contains(t, page, `id="t3"`, `id="t7"`, "Cancel all matching…")
	testkit.ContainsNone(t, page, `id="t12"`)
	testkit.Contains(t, s.page("/tasks?q=id:x"), "invalid task id")
	testkit.Contains(t, s.page("/api/v1/tasks?q=id:12"), `"id":12,`)

	form := url.Values{"query": {"id:3,7 state:pending"}, "back": {"/tasks"}}
	_, page = s.post("/actions/cancel", form)
	testkit.Contains(t, page, "<code>runner cancel 3 7</code>")
	confirm(t, form, page)
	_, page = s.post("/actions/cancel", form)
	testkit.Contains(t, page, "2 tasks cancelled")
}
