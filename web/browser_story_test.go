package web_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// alertPage returns the path of the page that an alert about failed attempts of
// a queue links to.
func alertPage(t *testing.T, queue string) string {
	t.Helper()
	rules, err := os.ReadFile("../contrib/prometheus/runner.rules.yml")
	testkit.NoError(t, err)
	found := regexp.MustCompile(`(?s)alert: RunnerAttemptsFail\n.*?page: '([^']+)'`).FindSubmatch(rules)
	if found == nil {
		t.Fatal("the alert RunnerAttemptsFail has no page, want one")
	}
	page := strings.TrimPrefix(string(found[1]), "https://runner.example.com")
	return strings.ReplaceAll(page, "{{ $labels.queue }}", queue)
}

// A user gets an alert at night and opens its page on a telephone. One click
// shows the traceback of a failure, and two more clicks retry all tasks that
// failed with the same cause.
func TestFromAlertToTracebackAndRepair(t *testing.T) {
	t.Parallel()
	r := open(t)
	const trace = "Traceback (most recent call last):\\n  File \"send.py\", line 7\\nConnectionError: mail-7.example.com refused"
	for range 12 {
		shell(t, r, "seq 1 400; printf '"+trace+"' >&2; exit 1", jobs.Queue("mail"))
	}
	shell(t, r, "exit 3", jobs.Queue("mail"))
	runnerkit.Drain(t, r, web1)
	b := browse(t, serve(t, r, webOptions))
	for _, width := range []int{390, 1280} {
		b.screen(width, "dark")
		b.open(alertPage(t, "mail"))
		b.shot("story-1-dark")
		b.run(chromedp.Click("a.cause")) // the first group, which is the largest
		inView := `[...document.querySelectorAll('pre.error')].some(e => e.textContent.includes('Traceback') &&
			e.textContent.includes('ConnectionError') && e.getBoundingClientRect().bottom < innerHeight)`
		b.until("the traceback is in view", "location.pathname.startsWith('/tasks/') && document.readyState === 'complete' && "+inView)
		b.until("the script runs", "!document.querySelector('.tools').hidden")
		b.shot("story-2-dark")
		b.run(chromedp.Click("#head .same button"), chromedp.WaitVisible("#ask[open]"))
		testkit.Contains(t, eval[string](b, "$('#ask').textContent"), "Retry 12 tasks: exit 1 · ConnectionError", "runner retry ")
		b.shot("story-3-dark")
		b.run(chromedp.Click("#ask button.primary"))
		b.until("the answer", "document.querySelector('.flash')?.textContent.includes('12 tasks retried')")
		n, _, err := r.Count(t.Context(), jobs.Filter{States: []jobs.State{jobs.Pending}})
		testkit.Equal(t, "error", err, nil)
		testkit.Equal(t, "pending tasks", n, 12)
		runnerkit.Drain(t, r, web1) // the tasks fail again
	}
}
