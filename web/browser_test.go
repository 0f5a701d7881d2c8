package web_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// browser is a tab of Chromium. At the end, the test fails on unexpected
// console messages and on requests to other servers.
type browser struct {
	t    testing.TB
	ctx  context.Context
	site *site

	mu       sync.Mutex
	messages []string
	requests []string
	expected []string // a console message is expected if it contains one of these texts
}

// browse opens a tab and signs in.
func browse(t testing.TB, s *site) *browser {
	t.Helper()
	b := &browser{t: t, ctx: newTab(t), site: s}
	if err := chromedp.Do(b.ctx); err != nil { // opens the tab
		t.Fatal(err)
	}
	if err := chromedp.Listen(b.ctx, func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventConsoleAPICalled:
			for _, arg := range e.Args {
				b.messages = append(b.messages, string(arg.Value))
			}
		case *runtime.EventExceptionThrown:
			b.messages = append(b.messages, e.ExceptionDetails.Text)
		case *log.EventEntryAdded:
			b.messages = append(b.messages, e.Entry.Text+" "+e.Entry.URL)
		case *network.EventRequestWillBeSent:
			b.requests = append(b.requests, e.Request.URL)
		}
	}); err != nil {
		t.Fatal(err)
	}
	call(b, network.Enable, network.EnableParams{})
	call(b, log.Enable, cdp.Empty{})
	call(b, runtime.Enable, cdp.Empty{})
	t.Cleanup(b.check)
	if s.token != "" {
		b.run(chromedp.Navigate(s.url+"/#t="+s.token), chromedp.WaitVisible("#tiles"))
		b.expect("401")
	}
	return b
}

// expect allows console messages that contain text.
func (b *browser) expect(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = append(b.expected, text)
}

// seen returns the URLs that the browser has requested so far.
func (b *browser) seen() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.requests)
}

// actions returns how many requests for an action the browser has sent.
func (b *browser) actions() int {
	isRead := func(url string) bool { return !strings.Contains(url, "/actions/") }
	return len(slices.DeleteFunc(b.seen(), isRead))
}

// check fails the test on unexpected console messages and on requests to other
// servers.
func (b *browser) check() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.messages {
		wanted := false
		for _, part := range b.expected {
			wanted = wanted || strings.Contains(text, part)
		}
		if !wanted {
			b.t.Errorf("got the console message %q, want none", text)
		}
	}
	for _, url := range b.requests {
		if !strings.HasPrefix(url, b.site.url+"/") && !strings.HasPrefix(url, "data:") && !strings.HasPrefix(url, "about:") {
			b.t.Errorf("got a request for %s, want none to other servers", url)
		}
	}
}

func (b *browser) run(steps ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 3*time.Minute) // without this timeout, a step could wait for ever
	defer cancel()
	testkit.NoError(b.t, chromedp.Do(ctx, steps...))
}

// call sends a command of the DevTools protocol.
func call[P, R any](b *browser, command cdp.Command[P, R], params P) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, command, params); err != nil {
		b.t.Fatal(err)
	}
}

// eval returns the value of an expression in the page.
func eval[T any](b *browser, script string) T {
	b.t.Helper()
	value, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](script))
	if err != nil {
		b.t.Fatalf("%s: got error %v, want none", script, err)
	}
	return value
}

func (b *browser) open(path string) {
	b.t.Helper()
	b.run(chromedp.Navigate(b.site.url+path), chromedp.WaitReady("main"))
}

// point moves the mouse to the centre of an element.
func (b *browser) point(selector string) {
	b.t.Helper()
	at := eval[[]float64](b, fmt.Sprintf(`(r => [r.x + r.width / 2, r.y + r.height / 2])(
		document.querySelector(%q).getBoundingClientRect())`, selector))
	b.run(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at[0], at[1]))
}

// until waits until an expression in JavaScript is true in the page.
func (b *browser) until(what, script string) {
	b.t.Helper()
	testkit.Eventually(b.t, what, func() bool {
		ok, err := chromedp.Run(b.ctx, chromedp.Evaluate[bool]("!!("+script+")"))
		return err == nil && ok // eval fails during a navigation
	})
}

// screen sets the size of the window and the colour scheme.
func (b *browser) screen(width int, theme string) {
	b.t.Helper()
	b.run(chromedp.EmulateViewport(int64(width), 900))
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		// without motion, a picture doesn't catch a button halfway between two
		// themes
		{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
}

// shot saves a screenshot in the directory of the environment variable
// RUNNER_SCREENSHOTS.
func (b *browser) shot(name string) {
	b.t.Helper()
	dir := os.Getenv("RUNNER_SCREENSHOTS") // the command "make screenshots" sets this variable
	if dir == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	testkit.NoError(b.t, err)
	testkit.NoError(b.t, os.MkdirAll(dir, 0o755))
	testkit.NoError(b.t, os.WriteFile(filepath.Join(dir, name+".png"), picture, 0o644))
}

var (
	widths = []int{320, 390, 768, 1280}
	themes = []string{"light", "dark"}
)

// looks returns the themes in which a test of the layout visits the pages. A
// theme changes only colours, so the second one matters for pictures alone.
func looks() []string {
	if os.Getenv("RUNNER_SCREENSHOTS") == "" {
		return themes[:1]
	}
	return themes
}

func TestPagesInBrowser(t *testing.T) {
	t.Parallel()
	r := open(t)
	pages := sampleDatabase(t, r)
	b := browse(t, serve(t, r, webOptions))
	maps.Copy(pages, map[string]string{"overview": "/", "tasks": "/tasks", "failed": "/tasks?q=state:failed",
		"workers":   "/workers",
		"schedules": "/schedules", "schedule": "/schedules/report", "label": "/jobs?label=webhook", "job": "/jobs?job=email.send",
		"grouped": "/tasks?q=state:failed&sort=cause", "sorted": "/tasks?q=state:scheduled&sort=due", "wrong": "/tasks?q=quue:x"})
	for name, path := range pages {
		b.open(path)
		for _, width := range widths {
			for _, theme := range looks() {
				b.screen(width, theme)
				// replace the texts that change from run to run by long fixed
				// texts
				eval[int](b, `document.querySelectorAll(".trends b").forEach(e => { e.textContent = "12m34s" }) || 0`)
				eval[int](b, `document.querySelectorAll(".next .dim time").forEach(e => { e.textContent = "22 Nov 22:44 CEST" }) || 0`)
				broken := eval[string](b, `[...document.querySelectorAll(".schedules .chip")].filter(e => e.offsetHeight >
					2.5 * parseFloat(getComputedStyle(e).lineHeight)).map(e => e.textContent).join()`)
				testkit.Equal(t, fmt.Sprintf("%s at %d px: chips with more than two lines", name, width), broken, "")
				b.fits(name, width)
				b.shot(fmt.Sprintf("%s-%d-%s", name, width, theme))
			}
		}
	}
}

// fits checks that the page is not wider than the window.
func (b *browser) fits(name string, width int) {
	b.t.Helper()
	if excess := eval[int](b, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); excess > 0 {
		wide := eval[string](b, `[...document.querySelectorAll("main *")].
			filter(e => !e.closest("details:not([open])") && e.getBoundingClientRect().right > document.documentElement.clientWidth).
			slice(0, 6).
			map(e => e.tagName + "." + e.className + ": " + e.textContent.slice(0, 40)).join(" | ")`)
		b.t.Errorf("%s at %d px: got a page that is %d px too wide, want it to fit: %s", name, width, excess, wide)
	}
}

func TestLargePagesInBrowser(t *testing.T) {
	testkit.NeedFull(t)
	t.Parallel()
	r := open(t)
	pages := largeDatabase(t, r)
	b := browse(t, serve(t, r, webOptions))
	maps.Copy(pages, map[string]string{"overview": "/", "tasks": "/tasks", "failed": "/tasks?q=state:failed", "schedules": "/schedules",
		"workers": "/workers"})
	for name, path := range pages {
		b.open(path)
		for _, width := range widths {
			b.screen(width, "light")
			b.fits(name, width)
			high := eval[string](b, `[...document.querySelectorAll(".workers th a, .queues th a, .schedules th a, .plain a")].map(e => {
				if (e.closest("#slots, .workers")) e.textContent = "build-machine-".repeat(20) // the longest name of a worker
				return e.getBoundingClientRect().height / parseFloat(getComputedStyle(e).lineHeight)
			}).filter(lines => lines > 3.1).join(" ")`)
			testkit.Equal(t, fmt.Sprintf("%s at %d px: lines of names with more than three", name, width), high, "")
			b.fits(name, width)
			b.shot(fmt.Sprintf("lot-%s-%d", name, width))
		}
	}
}

func TestEmptyPagesInBrowser(t *testing.T) {
	t.Parallel()
	b := browse(t, serve(t, open(t), webOptions))
	for name, path := range map[string]string{"overview": "/", "tasks": "/tasks", "schedules": "/schedules", "login": "/login"} {
		for _, width := range widths {
			b.screen(width, "dark")
			b.open(path)
			b.fits(name, width)
			b.shot(fmt.Sprintf("empty-%s-%d", name, width))
		}
	}
}

func TestLiveUpdatesInBrowser(t *testing.T) {
	t.Parallel()
	r := open(t)
	s := serve(t, r, webOptions)
	b := browse(t, s)
	b.screen(1280, "light")
	stop := sync.OnceFunc(runnerkit.Work(t, r, web1))
	t.Cleanup(stop)
	dir := t.TempDir()
	id := shell(t, r, "echo one; echo '<b>two</b>'; trap 'exit 5' TERM; while [ ! -e "+dir+
		"/go ]; do sleep 0.05; done; echo three; sleep 60")
	b.until("the task appears on the open overview", "document.querySelector('#workers').textContent.includes('"+fmt.Sprint(id)+"')")

	b.open(fmt.Sprintf("/tasks/%d", id))
	b.until("output is followed", "document.querySelector('.out').textContent.includes('<b>two</b>')")
	touch(t, dir+"/go")
	b.until("what comes is shown", "document.querySelector('.out').textContent.includes('three')")
	b.shot("running-1280-light")

	b.run(chromedp.Click("#head button[formaction$=cancel]"), chromedp.WaitVisible("#ask[open]"))
	b.shot("ask-1280-light")
	if text := eval[string](b, "document.querySelector('#ask').textContent"); !strings.Contains(text, fmt.Sprintf("runner cancel %d", id)) {
		t.Errorf("got the question %q, want it to contain the command", text)
	}
	b.run(chromedp.Click("#ask button.primary"))
	b.until("it has stopped", "document.querySelector('#head').textContent.includes('cancelled')")
	if got := state(t, r, id); got != jobs.Cancelled {
		t.Errorf("got state %s, want cancelled", got)
	}

	b.open("/")
	b.run(chromedp.Click("#live")) // after this click the page does not update itself
	b.until("nothing starts a request", "!stream && !timer && !busy")
	before := len(b.seen())
	done := shell(t, r, "true")
	testkit.Eventually(t, "a task ends", func() bool { return state(t, r, done) == jobs.Completed })
	testkit.Equal(t, "requests although live is off", len(b.seen()[before:]), 0)
	b.run(chromedp.Click("#live"))
	b.until("live again", "document.querySelector('#tiles').textContent.includes('1')")
}

func TestManyTasksAreRetriedByQuery(t *testing.T) {
	t.Parallel()
	r := open(t)
	for range 118 {
		shell(t, r, "exit 1", jobs.Queue("media"))
	}
	runnerkit.Drain(t, r, web1)
	s := serve(t, r, webOptions)
	b := browse(t, s)
	for name, script := range map[string]bool{"with": true, "without": false} {
		call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !script})
		b.open("/tasks?q=state:failed")
		b.run(chromedp.Click("#bulk form:not(#selection) button"), chromedp.WaitVisible("button.primary"))
		b.shot("question-" + name + "-script")
		b.run(chromedp.Click("button.primary"), chromedp.WaitVisible(".flash"))
		n, _, err := r.Count(t.Context(), jobs.Filter{States: []jobs.State{jobs.Pending}})
		if n != 118 || err != nil {
			t.Errorf("%s JavaScript: got %d pending tasks, error %v; want 118", name, n, err)
		}
		runnerkit.Drain(t, r, web1)
	}
}
