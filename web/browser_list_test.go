package web_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

func TestListHoldsStillUnderMouse(t *testing.T) {
	t.Parallel()
	r := open(t)
	first := shell(t, r, "true")
	b := browse(t, serve(t, r, webOptions))
	b.screen(1280, "light")
	b.open("/tasks")
	b.until("it is connected", "stream && stream.readyState === 1")
	b.point("#t1 td:last-child")
	for range 3 {
		shell(t, r, "true")
	}
	b.until("the list counts the new tasks", "!$('#fresh').hidden && $('#fresh').textContent === '3 new ↑'")
	testkit.Equal(t, "sign of the page", eval[string](b, "$('#live').textContent.trim() + ' ' + $('#live').className"), "● held amber")
	testkit.Equal(t, "rows", eval[int](b, "$$('#rows tbody tr').length"), 1)
	runnerkit.Drain(t, r, web1) // the task ends, so the list shows another state
	b.until("the shown row is up to date", "$('#t1').textContent.includes('completed')")
	b.shot("held-1280-light")
	b.run(chromedp.Click("#fresh"))
	b.until("the list shows the new tasks", "$$('#rows tbody tr').length === 4 && $('#fresh').hidden")
	b.until("the page is live", "$('#live').textContent.trim() === '● live' && !$('#live').className")

	// The list does not change while the mouse is on it, and shows the new task
	// when the mouse has left it.
	b.point("#t1 td:last-child")
	shell(t, r, "true")
	b.until("the list counts the new task", "$('#fresh').textContent === '1 new ↑'")
	b.point("footer")
	b.until("the list shows the new task", "$$('#rows tbody tr').length === 5 && $('#fresh').hidden")
	testkit.Equal(t, "state of the first task", state(t, r, first), jobs.Completed)
}

func TestKeysActOnSelection(t *testing.T) {
	t.Parallel()
	r := open(t)
	for range 4 {
		shell(t, r, "exit 1")
	}
	runnerkit.Drain(t, r, web1)
	b := browse(t, serve(t, r, webOptions))
	b.open("/tasks?q=state:failed")
	b.run(chromedp.WaitVisible(".tools"))
	for _, key := range []string{"j", "x", "j", "x", "j", "x", "j", "r"} {
		b.run(chromedp.KeyEvent(key))
	}
	b.until("a question about the selected tasks", "$('#ask[open] h1')?.textContent === 'Retry 3 tasks?'")
	b.run(chromedp.KeyEvent("\r"))
	b.until("the answer", "$('.flash')?.textContent.includes('3 tasks retried')")
	n, _, err := r.Count(t.Context(), jobs.Filter{States: []jobs.State{jobs.Pending}})
	testkit.Equal(t, "error", err, nil)
	testkit.Equal(t, "pending tasks", n, 3)
}

func TestActionsStayInView(t *testing.T) {
	t.Parallel()
	r := open(t)
	for n := range 50 {
		shell(t, r, fmt.Sprintf("exit %d", n+1))
	}
	runnerkit.Drain(t, r, web1)
	b := browse(t, serve(t, r, webOptions))
	for _, width := range []int{390, 1280} {
		b.screen(width, "light")
		b.open("/tasks?q=state:failed")
		b.until("all rows", "$$('#rows tbody tr').length === 50")
		eval[int](b, "(scrollTo(0, document.body.scrollHeight), 0)")
		b.until(fmt.Sprintf("the buttons are in view at %d px", width), `(r => scrollY > 500 && r.top >= 0 && r.bottom < innerHeight)(
			$('#selection button').getBoundingClientRect())`)
		b.until("nothing covers them", `(r => $('#selection').contains(document.elementFromPoint(r.x + r.width / 2, r.y + r.height / 2)))(
			$('#selection button').getBoundingClientRect())`)
	}
}

func TestListOffersNoActionThatIsRefused(t *testing.T) {
	r := open(t)
	shell(t, r, "exit 1")
	runnerkit.Drain(t, r, web1)
	shell(t, r, "true")
	s := serve(t, r, webOptions)
	for query, test := range map[string]struct{ offered, refused []string }{
		"state:failed": {[]string{`data-verb="retry"`, `data-verb="delete"`, "Retry all matching…", "Delete all matching…"},
			[]string{`data-verb="cancel"`, "Cancel all", "Cancel the"}},
		"state:pending": {[]string{`data-verb="cancel"`, "Cancel all matching…"},
			[]string{`data-verb="retry"`, `data-verb="delete"`, "Retry all", "Delete all", "Retry the", "Delete the"}},
		"state:running":   {nil, []string{"data-verb", "Retry all"}},
		"queue:default":   {[]string{`data-verb="retry"`, `data-verb="cancel"`, `data-verb="delete"`, "Retry all"}, nil},
		"state:completed": {nil, []string{"data-verb", "Retry all"}},
	} {
		page := s.page("/tasks?q=" + query)
		testkit.Contains(t, page, test.offered...)
		testkit.ContainsNone(t, page, test.refused...)
	}
}
