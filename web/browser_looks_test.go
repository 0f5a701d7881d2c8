package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"example.com/runner/internal/testkit"
	"example.com/runner/internal/testkit/runnerkit"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// cut returns the parts of the open dialog that are wider than their box or than the window.
func (b *browser) cut() string {
	b.t.Helper()
	return eval[string](b, `[...document.querySelectorAll('dialog[open], dialog[open] *')].filter(e => e.scrollWidth > e.clientWidth + 1 &&
		getComputedStyle(e).display !== 'inline' && !e.matches('input, .hidden') ||
		e.getBoundingClientRect().right > document.documentElement.clientWidth).map(e => e.tagName + ': ' + e.textContent.slice(0, 60)).join()`)
}

func TestQuestionsFitInABrowser(t *testing.T) {
	r := open(t)
	long := strings.Repeat("unreachable-", 16)
	for range 2 {
		shell(t, r, "echo "+long+" >&2; exit 1", jobs.Queue(strings.Repeat("media-", 16)))
	}
	runnerkit.Drain(t, r)
	b := browse(t, serve(t, r, webOptions))
	for _, width := range widths {
		for _, theme := range themes {
			b.screen(width, theme)
			for name, question := range map[string][2]string{"group": {"/tasks?q=state:failed&sort=cause", "#rows .act button"},
				"pause":  {"/", "#queues .act button"},
				"delete": {"/tasks/1", "#head form[action$=delete] button"},
				"all":    {"/tasks?q=state:failed", "#bulk form:not(#selection) button"}} {
				b.open(question[0])
				b.run(chromedp.WaitVisible(".tools"), chromedp.Click(question[1]), chromedp.WaitVisible("#ask[open]"))
				testkit.Equal(t, fmt.Sprintf("question %s at %d px: parts that are cut", name, width), b.cut(), "")
				b.fits(name, width)
				b.shot(fmt.Sprintf("question-%s-%d-%s", name, width, theme))
			}
		}
	}
}

func TestGroupsShowTheirTimesOnATelephone(t *testing.T) {
	r := open(t)
	shell(t, r, "exit 1", jobs.Queue("mail"))
	runnerkit.Drain(t, r)
	b := browse(t, serve(t, r, webOptions))
	for _, width := range widths {
		b.screen(width, "light")
		b.open("/tasks?q=state:failed&sort=cause")
		shown := eval[string](b, "document.querySelector('#rows').innerText.replace(/\\s+/g, ' ').toLowerCase()")
		testkit.Contains(t, shown, "mail", "first", "last", " ago")
	}
}

func TestNamesOfWorkersAreOnOneLine(t *testing.T) {
	const name = "batch-worker-17.eu-central-1.example:811" // 40 characters
	r := runnerkit.Open(t, runner.Options{Sync: runner.Normal, Concurrency: 8, Name: name})
	r.Register(runner.Commands(runner.CommandOptions{}))
	dir := t.TempDir()
	for range 4 {
		shell(t, r, "while [ ! -e "+dir+"/go ]; do sleep 0.05; done", jobs.Label("a-label-of-a-usual-length"))
	}
	stop := runnerkit.Work(t, r)
	defer stop()
	defer touch(t, dir+"/go")
	b := browse(t, serve(t, r, webOptions))
	for _, width := range []int{1280, 390} {
		b.screen(width, "light")
		b.open("/")
		b.until("the worker runs the tasks", "document.querySelector('#workers').textContent.includes('and 1 more')")
		b.fits("overview", width)
		b.shot(fmt.Sprintf("worker-names-%d", width))
		if lines := eval[float64](b, `(e => e.getBoundingClientRect().height / parseFloat(getComputedStyle(e).lineHeight))(
			document.querySelector('.workers th a'))`); width == 1280 && lines > 1.1 {
			t.Errorf("got a name of %d characters on %.1f lines, want 1", len(name), lines)
		}
	}
}

func TestTheProblemOfFailedTasksLeadsToTheirGroups(t *testing.T) {
	r := open(t)
	shell(t, r, "exit 1", jobs.Queue("mail"))
	runnerkit.Drain(t, r)
	testkit.Contains(t, serve(t, r, webOptions).page("/"), `href="/tasks?q=state%3Afailed%20queue%3Amail%20since%3A1d&amp;sort=cause"`)
}
