package web_test

import (
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
	"example.com/runner/web"
)

func TestActionSurvivesEndOfSessionInBrowser(t *testing.T) {
	t.Parallel()
	r := open(t)
	s := serve(t, r, webOptions)
	b := browse(t, s)
	b.screen(1280, "light")
	id := shell(t, r, "exit 1")
	runnerkit.Drain(t, r, web1)
	path := fmt.Sprintf("/tasks/%d", id)
	b.open(path)
	b.run(chromedp.Click("#live")) // stop the updates, because an update without a session would show the sign-in page too early
	call(b, network.ClearBrowserCookies, cdp.Empty{})
	b.run(chromedp.Click("#head button.primary"), chromedp.WaitVisible("input[name=token]"),
		chromedp.SendKeys("input[name=token]", s.token), chromedp.KeyEvent("\r"),
		chromedp.WaitVisible("#ask form[action$=retry]"))
	b.shot("signed-in")
	b.until("a question", fmt.Sprintf("document.querySelector('.ask').textContent.includes('Retry task %d?')", id))
	testkit.Equal(t, "state before the answer", state(t, r, id), jobs.Failed)
	b.run(chromedp.Click(".ask button.primary"), chromedp.WaitVisible(".flash"))
	b.until("the page of the task again", "location.pathname === '"+path+"'")
	testkit.Equal(t, "state", state(t, r, id), jobs.Pending)
}

// TestUpdateKeepsActionThatIsSentInBrowser updates a page while an action waits
// for its answer. The session has ended, so the answer asks the user to sign
// in. The update must not load another page, because the action would then be
// lost.
func TestUpdateKeepsActionThatIsSentInBrowser(t *testing.T) {
	t.Parallel()
	r := open(t)
	s := serve(t, r, webOptions)
	b := browse(t, s)
	id := shell(t, r, "exit 1")
	runnerkit.Drain(t, r, web1)
	b.open(fmt.Sprintf("/tasks/%d", id))
	call(b, network.ClearBrowserCookies, cdp.Empty{})
	eval[bool](b, `(() => {
		const send = fetch
		window.fetch = async (url, options) => {
			if (options?.method === 'POST') await new Promise(done => setTimeout(done, 500))
			return send(url, options)
		}
		window.same = true // until the page loads again
		document.querySelector('#head button.primary').click()
		document.dispatchEvent(new Event('visibilitychange')) // updates the page
		return true
	})()`)
	b.until("the sign-in of the action", "window.same && document.querySelector('#ask[open] input[name=token]')")
}

func TestQuestionOfLostActionChangesNothing(t *testing.T) {
	r := open(t)
	id := shell(t, r, "exit 1")
	daily(t, r, "s")
	runnerkit.Drain(t, r, web1)
	s := serve(t, r, web.ServerOptions{})
	for _, test := range []struct{ action, form, want string }{
		{"retry", "id=1", "Retry task 1?"},
		{"delete", "id=1", "Delete task 1?"},
		{"retry", "query=state:failed", "Retry 1 task: state:failed?"},
		{"cancel", "id=1", "Cancel task 1?"},
		{"queue-pause", "queue=media&reason=disk", "Pause media?"},
		{"queue-resume", "queue=", "Resume all queues?"},
		{"schedule-run", "name=s", "Run schedule s?"},
		{"schedule-pause", "name=s", "Pause schedule s?"},
	} {
		form, err := url.ParseQuery("ask=1&" + test.form)
		testkit.NoError(t, err)
		_, page := s.post("/actions/"+test.action, form)
		testkit.Contains(t, page, test.want)
	}
	if got := state(t, r, id); got != jobs.Failed {
		t.Errorf("got state %s, want failed", got)
	}
	if n, _, err := r.Count(t.Context(), jobs.Filter{}); n != 1 || err != nil {
		t.Errorf("got %d tasks, error %v; want 1", n, err)
	}
}

func TestDoubleClickActsOnce(t *testing.T) {
	t.Parallel()
	r := open(t)
	daily(t, r, "s")
	s := serve(t, r, web.ServerOptions{})
	var tabs sync.WaitGroup
	for range 3 {
		tabs.Go(func() {
			_, page := s.post("/actions/schedule-run", url.Values{"name": {"s"}, "back": {"/schedules"}})
			if !strings.Contains(page, "task 1 of schedule s enqueued") {
				t.Errorf("got no line about task 1, want one: %s", page)
			}
		})
	}
	tabs.Wait()
	if n, _, err := r.Count(t.Context(), jobs.Filter{}); n != 1 || err != nil {
		t.Errorf("got %d tasks, error %v; want 1", n, err)
	}
	b := browse(t, serve(t, r, webOptions))
	b.open("/schedules")
	eval[bool](b,
		`(b => { b.click(); return b.disabled && b.textContent === 'sending…' && (b.click(), true) })`+
			`(document.querySelector('.act button'))`)
	b.run(chromedp.WaitVisible(".flash"))
	testkit.Equal(t, "number of requests", b.actions(), 1)
}

func TestLostServerIsShownInBrowser(t *testing.T) {
	t.Parallel()
	r := open(t)
	shell(t, r, "exit 1")
	runnerkit.Drain(t, r, web1)
	b := browse(t, serve(t, r, webOptions))
	b.screen(1280, "light")
	b.expect("ERR_INTERNET_DISCONNECTED")
	b.open("/tasks/1")
	b.until("it is connected", "stream && stream.readyState === 1")
	connected := func(on bool) {
		call(b, cdp.Command[map[string]any, cdp.Empty]{Method: "Network.emulateNetworkConditions"},
			map[string]any{"offline": !on, "latency": 0, "downloadThroughput": -1, "uploadThroughput": -1})
	}
	connected(false)
	b.run(chromedp.Click("#head button.primary"), chromedp.WaitVisible("#ask[open] [data-again]"))
	if text := eval[string](b,
		"document.querySelector('#live').textContent + document.querySelector('#stale').textContent"); !strings.Contains(text,
		"● offlineThe server has not answered since") {
		t.Errorf("got the status %q, want offline", text)
	}
	b.shot("offline-1280-light")
	connected(true)
	b.run(chromedp.Click("#ask [data-again]"), chromedp.WaitVisible("#ask form[action$=retry]"), chromedp.Click("#ask button.primary"),
		chromedp.WaitVisible(".flash"))
	if got := state(t, r, 1); got != jobs.Pending {
		t.Errorf("got state %s, want pending", got)
	}
	b.until("the page is live again", "document.querySelector('#live').textContent.includes('live')")
}

func TestOpenPageStaysWhileDatabaseFailsInBrowser(t *testing.T) {
	t.Parallel()
	r := open(t)
	shell(t, r, "true")
	b := browse(t, serve(t, r, webOptions))
	b.screen(1280, "light")
	b.expect("503")
	b.open("/tasks")
	b.until("it is connected", "stream && stream.readyState === 1")
	testkit.NoError(t, r.Close())
	b.until("the page says so", "document.querySelector('#stale').textContent.includes('has not answered since')")
	b.until("the page keeps its tasks", "document.querySelector('#t1') !== null")
}

func TestSignInPageHasNoToolsOfOtherPages(t *testing.T) {
	s := serve(t, open(t), web.ServerOptions{})
	page := s.page("/login")
	testkit.ContainsNone(t, page, `id="live"`, `id="help"`)
	testkit.Contains(t, page, `id="theme"`)
}
