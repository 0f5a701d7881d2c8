package web_test

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"example.com/runner/internal/testkit"
	"example.com/runner/internal/testkit/runnerkit"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/web"
)

func TestTheOverviewShowsTheCauseOfFailures(t *testing.T) {
	r := open(t)
	for i := range 3 {
		shell(t, r, fmt.Sprintf("echo '535 authentication failed for user %d' >&2; exit 1", i), jobs.Queue("mail"))
	}
	shell(t, r, "echo 'no route to host' >&2; exit 1", jobs.Queue("mail"))
	shell(t, r, "exit 3", jobs.Queue("bulk"))
	runnerkit.Drain(t, r)
	page := serve(t, r, webOptions).page("/")
	testkit.Contains(t, page, `<span class="cause">most of them exit 1 · 535 authentication failed for user `,
		`<span class="cause">exit 3</span>`)
	page = serveEmbedded(t, r, web.Options{BasePath: "/x", HideArgs: true}).page("/")
	testkit.ContainsNone(t, page, "authentication failed")
}

func TestGroupsOfManyFailuresSayThatTheyAreTheLatest(t *testing.T) {
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
	pool, err := sql.Open("sqlite", "file:"+r.Path()+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	if _, err := pool.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
		INSERT INTO tasks (generation_id, state, job, args, queue, priority, attempt, max_attempts, max_losses,
			created_at, run_at, updated_at, started_at, finished_at, outcome)
		SELECT 3, 'failed', 'command', '["backup.sh"]', 'default', 5, 1, 1, 3, ?2 - i, ?2 - i, ?2 - i, ?2 - i, ?2 - i,
			'{"reason":"exit","error":"exit status 1","exit_code":1,"error_line":"no route to host ' || i || '"}'
		FROM n`, n, time.Now().UnixMilli()); err != nil {
		t.Fatal(err)
	}
}

func TestGroupsFollowTheFailures(t *testing.T) {
	r := open(t)
	mark := filepath.Join(t.TempDir(), "again")
	script := "if [ -e " + mark + " ]; then echo 'disk is full' >&2; else touch " + mark + "; echo 'no route to host' >&2; fi; exit 1"
	a, b := shell(t, r, script), shell(t, r, "echo 'no route to host' >&2; exit 1")
	runnerkit.Drain(t, r)
	s := serve(t, r, webOptions)
	const path = "/tasks?q=state:failed&sort=cause&n="
	testkit.Contains(t, s.page(path+"1"), "2 failed tasks in 1 group")
	if _, err := r.Retry(t.Context(), []int64{a}, 0); err != nil {
		t.Fatal(err)
	}
	runnerkit.Drain(t, r)
	testkit.Contains(t, s.page(path+"2"), "2 failed tasks in 2 groups", "disk is full")
	if _, err := r.Delete(t.Context(), []int64{b}); err != nil {
		t.Fatal(err)
	}
	page := s.page(path + "3")
	testkit.Contains(t, page, "1 failed task in 1 group", "disk is full")
	testkit.ContainsNone(t, page, "no route to host")
}

func TestAGroupOfFailuresIsRetriedInABrowser(t *testing.T) {
	t.Parallel()
	r := open(t)
	for i := range 7 {
		shell(t, r, fmt.Sprintf("echo '535 authentication failed for user %d' >&2; exit 1", i), jobs.Queue([]string{"mail", "bulk"}[i%2]))
	}
	for range 2 {
		shell(t, r, "echo 'no route to host' >&2; exit 1")
	}
	runnerkit.Drain(t, r)
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
		"document.querySelector('#ask').textContent.includes('Retry these 7 tasks: exit 1 · 535 authentication failed')")
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
