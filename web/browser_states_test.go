package web_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// busyVisits returns pages that show something in progress: a task that runs, a
// question, a message, a list that does not update while the pointer is on it.
func busyVisits(t *testing.T, r *runner.Runner, b *browser) []visit {
	t.Helper()
	failed := shell(t, r, "echo 'no route to host' >&2; exit 7", jobs.Queue("mail"))
	runnerkit.Drain(t, r, web1)
	daily(t, r, "s")
	stop := sync.OnceFunc(runnerkit.Work(t, r, web1))
	dir := t.TempDir()
	running := shell(t, r, "for i in $(seq 30); do echo \"line $i of the output\"; done; echo 'a warning' >&2; while [ ! -e "+dir+
		"/go ]; do sleep 0.1; done", jobs.Label("a task that runs"))
	t.Cleanup(func() { touch(t, dir+"/go"); stop() })
	testkit.Eventually(t, "it runs", func() bool { return state(t, r, running) == jobs.Running })
	page := func(id int64) string { return fmt.Sprintf("/tasks/%d", id) }
	online := func(on bool) {
		call(b, cdp.Command[map[string]any, cdp.Empty]{Method: "Network.emulateNetworkConditions"},
			map[string]any{"offline": !on, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1})
	}
	b.expect("ERR_INTERNET_DISCONNECTED")
	b.expect("404")
	return []visit{
		{"running", page(running), func() {
			b.until("output is followed", "document.querySelector('.out').textContent.includes('a warning')")
		}},
		{"ask-retry", page(failed), b.press("#head .same button", "#ask[open]")},
		{"worker", "/workers?worker=web1:811", nil},
		{"held", "/tasks?q=queue:default", func() {
			b.connected()
			b.point("#rows tbody tr:last-child td:last-child")
			shell(t, r, "true")
			b.until("the list holds still", "$('#live').textContent.includes('held')")
		}},
		{"flash", "/schedules", func() {
			b.until("the answer", `!document.querySelector('.tools').hidden && (document.querySelector('.flash') ||
				window.clicked || (window.clicked = true, document.querySelector('.act button').click(), false))`)
			b.run(chromedp.WaitVisible(".flash"))
		}},
		{"offline", page(failed), func() {
			b.connected()
			online(false)
			b.run(chromedp.Click("#head button.primary"), chromedp.WaitVisible("#ask[open] [data-again]"))
			online(true)
		}},
		{"missing", "/tasks/4711", nil},
		{"keys", "/tasks", b.press("#help", "#keys[open]")},
		{"login", "/login", nil},
	}
}

func TestMorePagesInBrowser(t *testing.T) {
	t.Parallel()
	r := open(t)
	b := browse(t, serve(t, r, webOptions))
	eachVisit(b, busyVisits(t, r, b), looks(), func(name string, width int, theme string) {
		testkit.Equal(t, fmt.Sprintf("%s at %d px: parts that are cut", name, width), b.cut(), "")
		testkit.Equal(t, fmt.Sprintf("%s at %d px: small targets", name, width), eval[string](b, small), "")
		b.fits(name, width)
		b.shot(fmt.Sprintf("%s-%d-%s", name, width, theme))
	})
}

func TestPagesInProgressAreAccessible(t *testing.T) {
	t.Parallel()
	text := axe(t)
	r := open(t)
	b := browse(t, serve(t, r, webOptions))
	eachVisit(b, busyVisits(t, r, b), themes, func(name string, width int, theme string) { b.audit(text, name, width, theme) })
}

func TestEditIsShownOnOpenPagesInBrowser(t *testing.T) {
	t.Parallel()
	r := open(t)
	id := shell(t, r, "true")
	s := jobs.Schedule{Name: "report", Cron: "0 3 * * *", Spec: jobs.Command(command.Shell("true"))}
	testkit.NoError(t, r.SetSchedule(t.Context(), s))
	b := browse(t, serve(t, r, webOptions))

	b.open(fmt.Sprintf("/tasks/%d", id))
	eval[bool](b, "document.querySelector('.again').open = true")
	_, err := r.Edit(t.Context(), id, jobs.Priority(9), jobs.Label("the edited task"))
	testkit.NoError(t, err)
	b.until("the page of the task shows the new priority", "document.querySelector('.facts').textContent.includes('priority 9')")
	b.until("the page of the task shows the new label", "document.querySelector('.what').textContent.includes('the edited task')")
	testkit.Equal(t, "whether the command line stays open", eval[bool](b, "document.querySelector('.again').open"), true)

	b.open("/schedules/report")
	s.Cron = "0 4 * * *"
	testkit.NoError(t, r.SetSchedule(t.Context(), s))
	b.until("the page of the schedule shows the new expression", "document.querySelector('.facts').textContent.includes('0 4 * * *')")
}
