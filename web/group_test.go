package web_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"example.com/runner/internal/testkit"
	"example.com/runner/internal/testkit/runnerkit"
	"example.com/runner/jobs"
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

func TestAGroupOfFailuresIsRetriedInABrowser(t *testing.T) {
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
