package web_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
	"example.com/runner/web"
)

func TestListHasPagesWithoutJavaScript(t *testing.T) {
	t.Parallel()
	r := open(t)
	for range 60 {
		shell(t, r, "exit 1", jobs.Queue("media"))
	}
	runnerkit.Drain(t, r, web1)
	b := browse(t, serve(t, r, webOptions))
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.open("/")
	b.run(chromedp.SendKeys("#q", "state:failed queue:media"), chromedp.KeyEvent("\r"), chromedp.WaitVisible("a[rel=next]"),
		chromedp.Click("#tabs a[href*='sort=id']"), chromedp.WaitVisible("#tabs a[href*='sort=id'][aria-current]"),
		chromedp.Click("a[rel=next]"), chromedp.WaitVisible("#t1"))
	if rows := eval[int](b, "document.querySelectorAll('tbody tr').length"); rows != 10 {
		t.Errorf("second page: got %d rows, want 10", rows)
	}
}

// A formStep starts an action on a page.
type formStep struct {
	path     string
	boxes    []string // check boxes to click before the button
	button   string
	question string // question that the page asks; empty if it asks none
	shown    string // answer
	command  string // command line that the answer shows
}

// formSteps has the steps for each action. They run in the order of the list.
var formSteps = []struct {
	action string
	steps  []formStep
}{
	{"queue-pause", []formStep{{"/", nil, "button[aria-label='Pause media']", "Pause media?", "media paused", "runner pause -q media"}}},
	{"queue-resume", []formStep{
		{"/", nil, "button[aria-label='Resume media']", "", "media resumed", "runner resume -q media"}}},
	{"retry", []formStep{
		{"/tasks?q=state:failed", []string{"#t1 input", "#t2 input"}, "#selection [data-verb=retry]", "", "2 tasks retried",
			"runner retry "},
		{"/tasks/3", nil, "#head button.primary", "", "1 task retried", "runner retry 3"},
		{"/tasks/4", nil, "#head .same button", "Retry 2 tasks: exit 1?", "2 tasks retried", "runner retry "}}},
	{"pause", []formStep{{"/tasks/1", nil, "#head [formaction$=pause]", "", "1 task paused", "runner pause 1"}}},
	{"resume", []formStep{{"/tasks/1", nil, "#head [formaction$=resume]", "", "1 task resumed", "runner resume 1"}}},
	{"first", []formStep{{"/tasks/1", nil, "#head [formaction$=first]", "", "1 task moved to the front", "runner edit --first 1"}}},
	{"cancel", []formStep{
		{"/tasks/1", nil, "#head [formaction$=cancel]", "", "1 task cancelled", "runner cancel 1"},
		{"/tasks?q=state:pending", []string{"#t2 input"}, "#selection [data-verb=cancel]", "", "1 task cancelled", "runner cancel 2"},
		{"/tasks?q=state:pending", nil, "#bulk form:not(#selection) button", "Cancel 3 tasks: state:pending?", "3 tasks cancelled",
			"runner cancel -s pending"}}},
	{"delete", []formStep{
		{"/tasks/1", nil, "#head form[action$=delete] button", "Delete task 1?", "1 task deleted", "runner delete 1"},
		{"/tasks", []string{"#t2 input", "#t3 input"}, "#selection [data-verb=delete]", "Delete 2 tasks?", "2 tasks deleted",
			"runner delete "}}},
	{"schedule-run", []formStep{
		{"/schedules", nil, "button[aria-label='Run now: nightly']", "", "of schedule nightly enqueued", "runner schedule run nightly"}}},
	{"schedule-pause", []formStep{
		{"/schedules", nil, "button[aria-label='Pause nightly']", "", "schedule nightly paused", "runner schedule pause nightly"}}},
	{"schedule-resume", []formStep{
		{"/schedules/nightly", nil, "#head [formaction$=resume]", "", "schedule nightly resumed", "runner schedule resume nightly"}}},
}

func TestAllActionsWorkWithoutJavaScript(t *testing.T) {
	t.Parallel()
	r := open(t)
	for range 5 {
		shell(t, r, "exit 1", jobs.Queue("media"))
	}
	daily(t, r, "nightly")
	runnerkit.Drain(t, r, web1)
	b := browse(t, serve(t, r, webOptions))
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	has := func(selector, text string) {
		t.Helper()
		b.until(text, fmt.Sprintf("document.querySelector(%q)?.textContent.includes(%q)", selector, text))
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log(eval[string](b, "location.href + document.body.innerText.slice(0, 600)"))
		}
	})
	tested := map[string]bool{}
	for _, a := range formSteps {
		tested[a.action] = true
		for _, step := range a.steps {
			b.open(step.path)
			for _, box := range step.boxes {
				b.run(chromedp.Click(box))
			}
			b.run(chromedp.Click(step.button))
			if step.question != "" {
				has(".ask h1", step.question)
				b.run(chromedp.Click(".ask button.primary"))
			}
			has(".flash", step.shown)
			has(".flash", step.command)
		}
	}
	for _, name := range web.Actions() {
		if !tested[name] {
			t.Errorf("the action %s has no step in formSteps, want one", name)
		}
	}
	testkit.Equal(t, "state of task 4", state(t, r, 4), jobs.Cancelled)
	testkit.Equal(t, "state of task 2", state(t, r, 2), "gone")
}

func TestHostileTextDoesNothingInBrowser(t *testing.T) {
	t.Parallel()
	const script, image = "<script>document.title='owned'</script>", "<img src=/healthz?x onerror=\"document.title='owned'\">"
	r := open(t)
	shell(t, r, "printf '"+script+"\\033]0;owned\\007\\033[2J\u202eRTL\\n'; exit 1", jobs.Label(script+image), jobs.Lane("'\">"+image))
	boom := jobs.DefineResult[string, string]("boom", jobs.MaxAttempts(1))
	r.Register(boom.Handler(func(_ context.Context, in string) (string, error) {
		if strings.HasPrefix(in, "result") {
			return in, nil
		}
		return "", fmt.Errorf("%s", in)
	}))
	for _, in := range []string{script + image, "result" + script + image} {
		runnerkit.Enqueue(t, r, boom.With(in))
	}
	schedule := jobs.Schedule{Name: "s", Cron: "0 3 * * *", Spec: jobs.Command(command.Shell(script), jobs.Label(image))}
	testkit.NoError(t, r.SetSchedule(t.Context(), schedule))
	runnerkit.Drain(t, r, web1)
	running := shell(t, r, "echo '"+script+image+"'; exec sleep 60", jobs.Label(image))
	stop := runnerkit.Work(t, r, web1)
	defer stop()
	defer func() { r.Cancel(t.Context(), []int64{running}, runner.CancelOptions{}) }()
	testkit.Eventually(t, "it runs", func() bool { return state(t, r, running) == jobs.Running })
	b := browse(t, serve(t, r, webOptions)) // at the end of the test, browse checks that the console of the browser has no message
	for _, path := range []string{"/", "/tasks", "/tasks/1", "/tasks/2", "/tasks/3", "/schedules",
		"/tasks?q=" + "%3Cscript%3Edocument", fmt.Sprintf("/tasks/%d", running)} {
		b.open(path)
		if strings.HasSuffix(path, fmt.Sprint(running)) {
			b.until("output is followed", "document.querySelector('.out').textContent.includes('<img')")
		}
		bad := eval[string](b, `document.title === 'owned' ? 'owned' :
			[...document.querySelectorAll('main img, main script, main [onerror]')].map(e => e.outerHTML).join()`)
		if bad != "" {
			t.Errorf("%s: got active content %s, want none", path, bad)
		}
		if !eval[bool](b, `document.body.textContent.includes("document.title='owned'")`) && path != "/" {
			t.Errorf("%s: got a page without the hostile text, want it as text", path)
		}
	}
	for _, url := range b.seen() {
		if strings.Contains(url, "healthz") {
			t.Errorf("got a request for %s, want none", url)
		}
	}
}

func TestRegionsInUseAreNotReplaced(t *testing.T) {
	t.Parallel()
	r := open(t)
	shell(t, r, "exit 1")
	runnerkit.Drain(t, r, web1)
	b := browse(t, serve(t, r, webOptions))
	b.screen(1280, "light") // the window is large enough for all rows
	stop := runnerkit.Work(t, r, web1)
	defer stop()
	seen := func(id int64) { // seen waits until the number of tasks on the page includes this task
		t.Helper()
		b.until("a newer task is known", fmt.Sprintf("document.querySelector('#tabs').textContent.includes('all %d')", id))
	}
	b.open("/tasks")
	b.run(chromedp.WaitVisible(".tools"))
	eval[bool](b, "window.mine = true") // a reload of the page would remove this variable
	eval[bool](b, "document.querySelector('#t1 input').checked = true")
	seen(shell(t, r, "true"))
	if !eval[bool](b, "document.querySelector('#t1 input').checked && !document.querySelector('#t2')") {
		t.Error("got the rows replaced while one was selected, want them kept")
	}
	b.run(chromedp.Click("#t1 input")) // this click clears the check box and leaves the focus on it
	seen(shell(t, r, "true"))
	if !eval[bool](b, "document.activeElement === document.querySelector('#t1 input') && !document.querySelector('#t3')") {
		t.Error("got the rows replaced while one had the focus, want them kept")
	}
	b.run(chromedp.Click("footer > span")) // this click takes the focus from the row
	b.point("footer")
	id := shell(t, r, "true")
	b.until("the rows are swapped", fmt.Sprintf("document.querySelector('#t%d')", id))

	at := eval[[]float64](b, "(r => [r.x + r.width / 2, r.y + r.height / 2])(document.querySelector('#t1').getBoundingClientRect())")
	b.run(chromedp.MouseEvent(input.DispatchMouseEventTypeMousePressed, at[0], at[1], chromedp.ButtonLeft))
	id = shell(t, r, "true")
	seen(id)
	if eval[bool](b, fmt.Sprintf("document.querySelector('#t%d') !== null", id)) {
		t.Error("got the rows replaced while the mouse button was down, want them kept so that no click is lost")
	}
	b.run(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseReleased, at[0], at[1], chromedp.ButtonLeft),
		chromedp.Click("footer > span"))
	b.point("footer")
	id = shell(t, r, "true")
	b.until("the rows are swapped again", fmt.Sprintf("document.querySelector('#t%d')", id))
	if !eval[bool](b, "window.mine === true") {
		t.Error("the page was reloaded, want only its regions replaced")
	}

	b.open("/tasks/1")
	b.run(chromedp.Click("#head form[action$=delete] button"), chromedp.WaitVisible("#ask[open]"))
	if _, err := r.Retry(t.Context(), []int64{1}, runner.RetryOptions{}); err != nil {
		t.Fatal(err)
	}
	b.until("the page is up to date behind the question",
		"document.querySelector('#attempts') || document.querySelector('#state').textContent.includes('attempt 2')")
	if !eval[bool](b, "document.querySelector('#ask').open") {
		t.Error("the question was closed, want it open")
	}
}

func TestHiddenTabHoldsNoConnection(t *testing.T) {
	t.Parallel()
	r := open(t)
	b := browse(t, serve(t, r, webOptions))
	b.until("it is connected", "stream && stream.readyState === 1")
	show := func(hidden bool) { // show sets the page visible or hidden, as when the user switches tabs
		eval[bool](b, fmt.Sprintf(`Object.defineProperty(document, 'hidden', {configurable: true, value: %v}) &&
			document.dispatchEvent(new Event('visibilitychange'))`, hidden))
	}
	show(true)
	if !eval[bool](b, "stream === undefined") {
		t.Error("the hidden tab has an open stream, want none")
	}
	before := len(b.seen())
	done := shell(t, r, "true")
	if n := len(b.seen()); n != before {
		t.Errorf("got requests %v while the tab is hidden, want none", b.seen()[before:])
	}
	show(false)
	b.until("the page is up to date after the tab is shown", "document.querySelector('#queues').textContent.includes('default')")
	if state(t, r, done) != jobs.Pending {
		t.Errorf("got state %s, want pending", state(t, r, done))
	}
}
