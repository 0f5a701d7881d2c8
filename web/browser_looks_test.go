package web_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/commands"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// cut returns the parts of the open dialog that are wider than their box or
// than the window.
func (b *browser) cut() string {
	b.t.Helper()
	return eval[string](b, `[...document.querySelectorAll('dialog[open], dialog[open] *')].filter(e => e.scrollWidth > e.clientWidth + 1 &&
		getComputedStyle(e).display !== 'inline' && !e.matches('input, .hidden') ||
		e.getBoundingClientRect().right > document.documentElement.clientWidth).
		map(e => e.tagName + ': ' + e.textContent.slice(0, 60)).join()`)
}

func TestQuestionsFitInBrowser(t *testing.T) {
	t.Parallel()
	r := open(t)
	long := strings.Repeat("unreachable-", 16)
	for range 2 {
		shell(t, r, "echo "+long+" >&2; exit 1", jobs.Queue(strings.Repeat("media-", 16)))
	}
	runnerkit.Drain(t, r, web1)
	b := browse(t, serve(t, r, webOptions))
	for _, width := range widths {
		for _, theme := range looks() {
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

func TestGroupsShowTheirTimesOnTelephone(t *testing.T) {
	t.Parallel()
	r := open(t)
	shell(t, r, "exit 1", jobs.Queue("mail"))
	runnerkit.Drain(t, r, web1)
	b := browse(t, serve(t, r, webOptions))
	for _, width := range widths {
		b.screen(width, "light")
		b.open("/tasks?q=state:failed&sort=cause")
		shown := eval[string](b, "document.querySelector('#rows').innerText.replace(/\\s+/g, ' ').toLowerCase()")
		testkit.Contains(t, shown, "mail", "first", "last", " ago")
	}
}

func TestNamesOfWorkersAreOnOneLine(t *testing.T) {
	t.Parallel()
	const name = "batch-worker-17.eu-central-1.example:811" // 40 characters
	r := runnerkit.Open(t, runner.Options{Sync: runner.SyncNormal})
	r.Register(commands.Handler(commands.Options{}))
	dir := t.TempDir()
	for range 4 {
		shell(t, r, "while [ ! -e "+dir+"/go ]; do sleep 0.05; done", jobs.Label("a-label-of-a-usual-length"))
	}
	stop := runnerkit.Work(t, r, runner.WorkOptions{Concurrency: 8, Name: name})
	defer stop()
	defer touch(t, dir+"/go")
	b := browse(t, serve(t, r, webOptions))
	for _, width := range []int{1280, 390} {
		b.screen(width, "light")
		b.open("/")
		b.until("the worker runs the tasks", "document.querySelector('#workers').textContent.includes('and 1 more')")
		b.fits("overview", width)
		b.shot(fmt.Sprintf("worker-names-%d", width))
		// The height of a name on one line may be slightly more than the height
		// of a line.
		if lines := eval[float64](b, `(e => e.getBoundingClientRect().height / parseFloat(getComputedStyle(e).lineHeight))(
			document.querySelector('.workers th a'))`); width == 1280 && lines >= 2 {
			t.Errorf("got a name of %d characters on %.1f lines, want 1", len(name), lines)
		}
	}
}

func TestProblemOfFailedTasksLeadsToTheirGroups(t *testing.T) {
	r := open(t)
	shell(t, r, "exit 1", jobs.Queue("mail"))
	runnerkit.Drain(t, r, web1)
	testkit.Contains(t, serve(t, r, webOptions).page("/"), `href="/tasks?q=state%3Afailed%20queue%3Amail%20since%3A1d&amp;sort=cause"`)
}

func TestScheduleShowsBothZonesOnTelephone(t *testing.T) {
	t.Parallel()
	r := open(t)
	s := jobs.Schedule{Name: "s", Cron: "0 3 * * *", Zone: "Asia/Tokyo", Spec: jobs.Command(command.Shell("true"))}
	testkit.NoError(t, r.SetSchedule(t.Context(), s))
	b := browse(t, serve(t, r, webOptions))
	for _, width := range widths {
		b.screen(width, "light")
		b.open("/schedules/s")
		testkit.Contains(t, eval[string](b, "document.querySelector('.ticks').innerText"), "03:00:00 JST", "18:00:00 UTC",
			"In the zone of this page")
		b.fits("schedule", width)
	}
}

func TestRowsOfSchedulesAreLowOnTelephone(t *testing.T) {
	t.Parallel()
	r := open(t)
	for _, name := range []string{"backup", "report"} {
		s := jobs.Schedule{Name: name, Cron: "44 22 28 2 *", Zone: "Europe/Berlin", Spec: jobs.Command(command.Shell("true"))}
		testkit.NoError(t, r.SetSchedule(t.Context(), s))
		for range 6 {
			if _, err := admin.RunSchedule(t.Context(), r, name); err != nil {
				t.Fatal(err)
			}
			runnerkit.Drain(t, r, web1)
		}
	}
	testkit.NoError(t, admin.PauseSchedule(t.Context(), r, "report"))
	b := browse(t, serve(t, r, webOptions))
	b.screen(390, "light")
	b.open("/schedules")
	b.fits("schedules", 390)
	for _, height := range eval[[]float64](b, "[...document.querySelectorAll('.schedules tbody tr')].map(e => e.offsetHeight)") {
		if height > 96 {
			t.Errorf("got a row of %v px, want at most 96", height)
		}
	}
	b.shot("schedules-paused-390-light")
}

func TestQueuesShowTheirFailuresOnTelephone(t *testing.T) {
	t.Parallel()
	r := open(t)
	shell(t, r, "exit 1")
	runnerkit.Drain(t, r, web1)
	b := browse(t, serve(t, r, webOptions))
	b.screen(390, "light")
	b.open("/")
	testkit.Contains(t, eval[string](b, "document.querySelector('#queues').innerText"), "Failed 24h")
	b.fits("overview", 390)
}

func TestBarOfActionsIsLowOnTelephone(t *testing.T) {
	t.Parallel()
	r := open(t)
	for n := range 50 {
		shell(t, r, fmt.Sprintf("exit %d", n+1))
	}
	runnerkit.Drain(t, r, web1)
	b := browse(t, serve(t, r, webOptions))
	b.screen(390, "light")
	b.open("/tasks?q=state:failed")
	b.until("all rows", "$$('#rows tbody tr').length === 50")
	eval[int](b, "(scrollTo(0, 2000), 0)")
	b.until("the buttons are in view", "scrollY > 500 && $('#selection').getBoundingClientRect().top >= 0")
	covered := eval[float64](b, `(y => { while (!document.elementFromPoint(30, y).closest('#rows')) y++; return y })(0)`)
	if covered > 56 {
		t.Errorf("got %v px covered by the buttons, want at most 56", covered)
	}
	b.shot("bar-390-light")
}

func TestOrdersStandApartFromStates(t *testing.T) {
	t.Parallel()
	r := open(t)
	shell(t, r, "exit 1")
	runnerkit.Drain(t, r, web1)
	b := browse(t, serve(t, r, webOptions))
	for _, width := range widths {
		b.screen(width, "light")
		b.open("/tasks?q=state:failed")
		testkit.Equal(t, fmt.Sprintf("dark labels at %d px", width), eval[int](b, `[...document.querySelectorAll('#tabs a')].filter(e =>
			getComputedStyle(e).backgroundColor === getComputedStyle(document.body).color).length`), 1)
		gap := eval[[]float64](b, `(([a, b]) => [b.left - a.right, b.top - a.bottom])([[...document.querySelectorAll('#tabs > a')].at(-1),
			document.querySelector('.order .dim')].map(e => e.getBoundingClientRect()))`)
		if gap[0] < 16 && gap[1] < 0 {
			t.Errorf("%d px: got gaps of %v px, want at least 16 px beside the states, or another line", width, gap)
		}
	}
}

func TestPagesSayWhatTheyCount(t *testing.T) {
	r := open(t)
	for range 3 {
		shell(t, r, "true", jobs.Label("nightly"))
	}
	runnerkit.Drain(t, r, web1)
	s := serve(t, r, webOptions)
	testkit.Contains(t, s.page("/"), "<span>Completed 24h</span><b>3</b> <small>runs</small>",
		"A bar counts each end of a task. Its list lacks tasks that were retried or deleted since.")
	testkit.Contains(t, s.page("/jobs?label=nightly"), "Duration p95", `<a href="/tasks" aria-current="page">Tasks</a>`)
	page := s.page("/tasks?q=state:faild")
	testkit.Equal(t, "number of proposals", strings.Count(strings.ToLower(page), "did you mean"), 1)
	testkit.Contains(t, page, "unknown state &#34;faild&#34;; did you mean failed?</p>")
}
