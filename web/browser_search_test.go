package web_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/chromedp"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/commands"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// timezoneOverride sets the zone of the browser.
var timezoneOverride = cdp.Command[map[string]any, cdp.Empty]{Method: "Emulation.setTimezoneOverride"}

func TestZoneIsChosenWithOneClick(t *testing.T) {
	t.Parallel()
	r := open(t)
	shell(t, r, "true")
	runnerkit.Drain(t, r, web1)
	b := browse(t, serve(t, r, webOptions))
	b.screen(1280, "light")
	call(b, timezoneOverride, map[string]any{"timezoneId": "Asia/Tokyo"})
	choose := func(link, want string) {
		t.Helper()
		b.open("/?range=1h")
		b.run(chromedp.WaitVisible(".tools"), chromedp.Click(link))
		b.until(want, fmt.Sprintf("document.querySelector('.zone b')?.textContent === %q && "+
			"location.search === '?range=1h'", want))
	}
	choose("#local", "Asia/Tokyo")
	testkit.Contains(t, eval[string](b, "document.querySelector('#chart .axis').textContent"), "Times in JST")
	testkit.Equal(t, "the chosen zone is not offered again", eval[bool](b, "document.querySelector('#local').hidden"), true)
	choose(".zone a[href*='zone=UTC']", "UTC")
	choose(".zone a[href*='zone=server']", "UTC") // choose the zone of the server, which is UTC

	b.run(chromedp.Click("#zone"))
	testkit.Equal(t, "field of the zone", eval[string](b, "document.querySelector('#zone').value"), "")
	b.until("the field completes", "[...document.querySelector('#zones').options].some(o => o.value === 'America/Sao_Paulo')")
	testkit.Equal(t, "local is offered", eval[bool](b, "$$('#zones option').some(o => o.value === 'local')"), false)
	b.run(chromedp.SendKeys("#zone", "America/Sao_Paulo\r"))
	b.until("the typed zone", "document.querySelector('.zone b')?.textContent === 'America/Sao_Paulo'")
	b.shot("zone-1280-light")
}

func TestKeysCancelAndDelete(t *testing.T) {
	t.Parallel()
	r := open(t)
	first, second := shell(t, r, "true"), shell(t, r, "exit 1", jobs.Queue("other"))
	testkit.NoError(t, admin.PauseQueues(t.Context(), r, []string{"default"}, admin.PauseOptions{Reason: "wait"}))
	runnerkit.Drain(t, r, web1)
	b := browse(t, serve(t, r, webOptions))
	press := func(path string, keys ...string) {
		t.Helper()
		b.open(path)
		b.run(chromedp.WaitVisible(".tools"))
		for _, key := range keys {
			b.run(chromedp.KeyEvent(key))
		}
	}
	press("/tasks?q=state:pending", "j", "c")
	b.until("a question", "$('#ask[open] h1')?.textContent.startsWith('Cancel task')")
	b.run(chromedp.KeyEvent("\r"))
	b.until("it is cancelled", "$('.flash')?.textContent.includes('1 task cancelled')")
	testkit.Equal(t, "state", state(t, r, first), jobs.Cancelled)

	press("/tasks?q=state:failed", "j", "d")
	b.until("a question", "$('#ask[open] h1')?.textContent.startsWith('Delete task')")
	testkit.Equal(t, "the focus is on", eval[string](b, "document.activeElement.textContent"), "No")
	b.run(chromedp.KeyEvent("\r"))
	b.until("enter closes the question", "!$('#ask').open")
	testkit.Equal(t, "state", state(t, r, second), jobs.Failed)
	b.run(chromedp.KeyEvent("d"))
	b.until("a question", "$('#ask[open] .danger')")
	b.run(chromedp.Focus("#ask .danger"), chromedp.KeyEvent("\r"))
	b.until("it is deleted", "$('.flash')?.textContent.includes('1 task deleted')")
	testkit.Equal(t, "state", state(t, r, second), "gone")
}

func TestButtonsWorkWithKeyboard(t *testing.T) {
	t.Parallel()
	r := open(t)
	id := shell(t, r, "true")
	daily(t, r, "s")
	b := browse(t, serve(t, r, webOptions))
	page := fmt.Sprintf("/tasks/%d", id)
	for _, step := range []struct{ path, button, answer string }{
		{page, "#head [formaction$=pause]", "1 task paused"}, {page, "#head [formaction$=resume]", "1 task resumed"},
		{page, "#head [formaction$=first]", "1 task moved"}, {"/schedules", ".act [formaction$=pause]", "schedule s paused"},
		{"/schedules", ".act [formaction$=resume]", "schedule s resumed"}, {"/schedules", ".act button", "task 2 of schedule s enqueued"}} {
		b.open(step.path)
		b.run(chromedp.WaitVisible(".tools"))
		b.tabTo(step.button)
		b.run(chromedp.KeyEvent("\r"))
		b.until(step.answer, fmt.Sprintf("$('.flash')?.textContent.includes(%q)", step.answer))
	}
}

// tabTo presses the tab key until an element has the focus.
func (b *browser) tabTo(selector string) {
	b.t.Helper()
	for range 60 {
		b.run(chromedp.KeyEvent("\t"))
		if eval[bool](b, fmt.Sprintf("document.activeElement.matches(%q)", selector)) {
			return
		}
	}
	b.t.Fatalf("the tab key did not reach %s in 60 steps", selector)
}

func TestDrawingOfDependenciesIsReachedWithKeyboard(t *testing.T) {
	t.Parallel()
	r := open(t)
	first := shell(t, r, "true")
	id := shell(t, r, "true", jobs.DependsOn(first))
	b := browse(t, serve(t, r, webOptions))
	b.open(fmt.Sprintf("/tasks/%d", id))
	b.run(chromedp.WaitVisible(".tools"))
	b.tabTo(".graph")
	testkit.Equal(t, "name of the drawing", eval[string](b, "document.activeElement.getAttribute('aria-label')"), "Dependencies")
	b.tabTo(fmt.Sprintf(".graph a[href='/tasks/%d']", first))
	b.run(chromedp.KeyEvent("\r"))
	b.until("the page of the task", fmt.Sprintf("location.pathname === '/tasks/%d'", first))
}

func TestLiveRegionSpeaksNewProblemsOnly(t *testing.T) {
	t.Parallel()
	r := runnerkit.Open(t, runner.Options{Sync: runner.SyncNormal})
	r.Register(commands.Handler(commands.Options{}))
	stop := runnerkit.Work(t, r, web1)
	defer stop()
	fail := func(queue string) {
		t.Helper()
		id := shell(t, r, "exit 1", jobs.Queue(queue))
		testkit.Eventually(t, "it fails", func() bool { return state(t, r, id) == jobs.Failed })
	}
	fail("mail")
	b := browse(t, serve(t, r, webOptions))
	b.open("/")
	b.connected()
	eval[bool](b, `(new MutationObserver(() => { window.spoken = (window.spoken || []).concat($('#news').textContent) }).
		observe($('#news'), {childList: true}), true)`)
	fail("mail") // this failure adds no problem to the page, but increases the number in the first problem
	b.until("the page shows the number", "$('.problem').textContent.includes('2 tasks failed')")
	testkit.Equal(t, "spoken after a change of a number", eval[int](b, "(window.spoken || []).length"), 0)
	fail("other")
	b.until("both problems", "$$('.problem').length === 2")
	spoken := eval[[]string](b, "window.spoken")
	testkit.Len(t, "spoken texts", spoken, 1)
	testkit.Contains(t, spoken[0], "other")
	testkit.ContainsNone(t, spoken[0], "mail")
	testkit.Equal(t, "other live regions", eval[string](b,
		"$$('[aria-live], [role=status], [role=alert]').map(e => e.id || e.className).join()"), "stale,news")
}
