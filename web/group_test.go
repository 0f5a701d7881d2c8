package web_test

import (
	"fmt"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
	"example.com/runner/web"
)

func TestOverviewShowsCauseOfFailures(t *testing.T) {
	r := open(t)
	for i := range 3 {
		shell(t, r, fmt.Sprintf("echo '535 authentication failed for user %d' >&2; exit 1", i), jobs.Queue("mail"))
	}
	shell(t, r, "echo 'no route to host' >&2; exit 1", jobs.Queue("mail"))
	shell(t, r, "exit 3", jobs.Queue("bulk"))
	runnerkit.Drain(t, r, web1)
	page := serve(t, r, webOptions).page("/")
	testkit.Contains(t, page, `<span class="cause">most of them exit 1 · 535 authentication failed for user `,
		`<span class="cause">exit 3</span>`)
	page = serveEmbedded(t, r, web.Options{BasePath: "/x", HideArgs: true}).page("/")
	testkit.ContainsNone(t, page, "authentication failed")
}

func TestGroupsOfManyFailuresSayThatTheyAreLatest(t *testing.T) {
	r := open(t)
	insertFailed(t, r, 9_999)
	s := serve(t, r, webOptions)
	const path = "/tasks?q=state:failed&sort=cause&n="
	page := s.page(path + "1")
	testkit.Contains(t, page, "9,999 ×", "Retry these 9,999", ">9,999 failed tasks in 1 group.")
	testkit.ContainsNone(t, page, "or earlier", "The last")
	insertFailed(t, r, 10)
	testkit.Contains(t, s.page(path+"2"), "10,000 ×", "</time> or earlier",
		">The last 10,000 failed tasks in 1 group. Earlier failures are not counted.")
}

// insertFailed inserts n tasks that have failed at different times.
func insertFailed(t testing.TB, r *runner.Runner, n int) {
	t.Helper()
	write(t, r, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
		INSERT INTO tasks (generation_id, state, job, args, queue, priority, attempt, max_attempts, max_losses,
			created_at, run_at, updated_at, started_at, finished_at, outcome)
		SELECT 3, 'failed', 'command', '["backup.sh"]', 'default', 5, 1, 1, 3, ?2 - i, ?2 - i, ?2 - i, ?2 - i, ?2 - i,
			'{"reason":"exit","error":"exit status 1","exit_code":1,"error_line":"no route to host ' || i || '"}'
		FROM n`, n, time.Now().UnixMilli())
}

func TestGroupsFollowFailures(t *testing.T) {
	r := open(t)
	mark := filepath.Join(t.TempDir(), "again")
	script := "if [ -e " + mark + " ]; then echo 'disk is full' >&2; else touch " + mark + "; echo 'no route to host' >&2; fi; exit 1"
	a, b := shell(t, r, script), shell(t, r, "echo 'no route to host' >&2; exit 1")
	runnerkit.Drain(t, r, web1)
	s := serve(t, r, webOptions)
	const path = "/tasks?q=state:failed&sort=cause&n="
	testkit.Contains(t, s.page(path+"1"), "2 failed tasks in 1 group")
	if _, err := r.Retry(t.Context(), []int64{a}, runner.RetryOptions{}); err != nil {
		t.Fatal(err)
	}
	runnerkit.Drain(t, r, web1)
	testkit.Contains(t, s.page(path+"2"), "2 failed tasks in 2 groups", "disk is full")
	if _, err := r.Delete(t.Context(), []int64{b}); err != nil {
		t.Fatal(err)
	}
	page := s.page(path + "3")
	testkit.Contains(t, page, "1 failed task in 1 group", "disk is full")
	testkit.ContainsNone(t, page, "no route to host")
}

// TestGroupIsListOfItsTasks opens a group, and follows its way through the page
// of a task to the question: the filters of the first list stay.
func TestGroupIsListOfItsTasks(t *testing.T) {
	r := open(t)
	for i, queue := range []string{"mail", "bulk", "mail", "media"} {
		shell(t, r, fmt.Sprintf("echo '535 authentication failed for user %d' >&2; exit 1", i), jobs.Queue(queue))
	}
	shell(t, r, "echo 'no route to host' >&2; exit 1", jobs.Queue("mail"))
	runnerkit.Drain(t, r, web1)
	write(t, r, "UPDATE tasks SET finished_at = finished_at - 864000000 WHERE id = 4") // ten days ago
	write(t, r, "UPDATE tasks SET finished_at = finished_at - 7200000 WHERE id = 1")
	s := serve(t, r, webOptions)
	const within = "/tasks?q=state:failed%20queue:mail%20queue:bulk%20since:1d"
	groups := s.page(within + "&sort=cause")
	list := regexp.MustCompile(`<a href="([^"]+)" title="List these tasks">3 ×</a>`).FindStringSubmatch(groups)
	task := regexp.MustCompile(`<a href="([^"]+)" class="cause">exit 1 · 535`).FindStringSubmatch(groups)
	if list == nil || task == nil {
		t.Fatalf("got links %v and %v, want a list of 3 tasks and the latest task\n%s", list, task, groups)
	}

	page := s.page(list[1])
	testkit.Contains(t, page, `id="t1"`, `id="t2"`, `id="t3"`, "<b>Cause</b> exit 1 · 535 authentication failed", "Retry all matching…",
		"Delete all matching…", "Remove </span>cause:")
	testkit.ContainsNone(t, page, `id="t4"`, `id="t5"`, "Cancel all")
	testkit.Contains(t, s.page(strings.Replace(list[1], "/tasks", "/api/v1/tasks", 1)), `"id":3,`)
	key := regexp.MustCompile(`cause%3A[0-9a-f]+`).FindString(list[1])
	testkit.Contains(t, s.page("/tasks?q=state:failed%20queue:media%20since:1d%20"+key), "No task matches.")

	page = s.page(task[1])
	testkit.Contains(t, page, `<a href="`+list[1]+`">all tasks that failed like this</a>`)
	query := regexp.MustCompile(`class="buttons same"><input type="hidden" name="query" value="([^"]+)"`).FindStringSubmatch(page)
	form := url.Values{"query": {query[1]}, "back": {"/tasks"}}
	_, page = s.post("/actions/retry", form)
	testkit.Contains(t, page, "Retry 3 tasks: exit 1 · 535 authentication failed", "runner retry -q mail -q bulk --since 1d --group ")
	confirm(t, form, page)
	_, page = s.post("/actions/retry", form)
	testkit.Contains(t, page, "3 tasks retried")
	testkit.Equal(t, "state of the old failure", state(t, r, 4), jobs.Failed)

	page = s.page("/tasks/4") // not from a list: all failed tasks of the job
	query = regexp.MustCompile(`class="buttons same"><input type="hidden" name="query" value="([^"]+)"`).FindStringSubmatch(page)
	_, page = s.post("/actions/delete", url.Values{"query": {query[1]}, "back": {"/tasks"}})
	testkit.Contains(t, page, "Delete 1 task: exit 1 · 535", "<code>runner delete 4</code>")
}

func TestOnlyLargeGroupsAreListed(t *testing.T) {
	r := open(t)
	insertFailed(t, r, 150)
	write(t, r, `UPDATE tasks SET outcome = replace(outcome, 'host', char(97 + id / 26 % 26, 97 + id % 26)) WHERE id > 3`)
	page := serve(t, r, webOptions).page("/tasks?q=state:failed&sort=cause")
	testkit.Equal(t, "groups", strings.Count(page, ` ×</a></th>`), 100)
	testkit.Contains(t, page, ">150 failed tasks in 148 groups. The 100 largest are listed", `>3 ×</a>`)
}

func TestGroupOfFailuresIsRetriedInBrowser(t *testing.T) {
	t.Parallel()
	r := open(t)
	for i := range 7 {
		shell(t, r, fmt.Sprintf("echo '535 authentication failed for user %d' >&2; exit 1", i), jobs.Queue([]string{"mail", "bulk"}[i%2]))
	}
	for range 2 {
		shell(t, r, "echo 'no route to host' >&2; exit 1")
	}
	runnerkit.Drain(t, r, web1)
	b := browse(t, serve(t, r, webOptions))
	for _, width := range widths {
		b.screen(width, "light")
		b.open("/tasks?q=state:failed&sort=cause")
		b.fits("groups", width)
		b.shot(fmt.Sprintf("groups-%d-light", width))
	}
	if got := eval[string](b, "document.querySelector('tbody tr').textContent.replace(/\\s+/g, ' ')"); got == "" ||
		eval[int](b, "document.querySelectorAll('tbody tr').length") != 2 {
		t.Errorf("got the first group %q, want 2 groups", got)
	}
	shell(t, r, "echo '535 authentication failed for user 99' >&2; exit 1", jobs.Queue("other"))
	b.run(chromedp.Click("tbody tr:first-child .act button"), chromedp.WaitVisible("#ask form[action$=retry]"))
	b.until("the question counts the tasks",
		"document.querySelector('#ask').textContent.includes('Retry 7 tasks: exit 1 · 535 authentication failed')")
	b.shot("group-question-1280-light")
	b.run(chromedp.Click("#ask button.primary"), chromedp.WaitVisible(".flash"))
	for id := range int64(10) {
		want := jobs.Pending
		if id == 7 || id == 8 {
			want = jobs.Failed
		}
		if got := state(t, r, id+1); got != want {
			t.Errorf("task %d: got state %s, want %s", id+1, got, want)
		}
	}
}
