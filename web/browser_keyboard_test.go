package web_test

import (
	"testing"

	"github.com/chromedp/chromedp"

	"example.com/runner/jobs"
	"example.com/runner/test/testkit/runnerkit"
)

func TestPagesCanBeUsedWithKeyboard(t *testing.T) {
	t.Parallel()
	r := open(t)
	for range 3 {
		shell(t, r, "exit 1")
	}
	runnerkit.Drain(t, r, web1)
	s := serve(t, r, webOptions)
	b := browse(t, s)
	key := func(keys ...string) {
		t.Helper()
		for _, k := range keys {
			b.run(chromedp.KeyEvent(k))
		}
	}
	key("g", "t")
	b.until("tasks", "location.pathname == '/tasks' && document.querySelector('tbody tr') && !document.querySelector('.tools').hidden")
	key("j", "j")
	b.until("the second row", "document.querySelectorAll('tbody tr')[1].classList.contains('on')")
	key("x")
	b.until("it is selected", "document.querySelector('#selected').textContent == '1 selected'")
	key("r")
	b.until("a question", "document.querySelector('#ask[open]')")
	key("\r")
	b.until("an answer, and the script of its page", "document.querySelector('.flash') && !document.querySelector('.tools').hidden")
	if got := state(t, r, 2); got != jobs.Pending {
		t.Errorf("got state %s, want pending", got)
	}
	key("/")
	b.until("the search has the focus", "document.activeElement.name == 'q'")
	eval[string](b, "document.activeElement.value = ''") // delete the "/", which DevTools types into the field
	b.run(chromedp.SendKeys("input[name=q]", "state:failed"), chromedp.KeyEvent("\r"))
	b.until("the search is done", "location.search.includes('failed') && document.querySelectorAll('tbody tr').length == 2 && "+
		"!document.querySelector('.tools').hidden")
	key("g", "w")
	b.until("workers", "location.pathname == '/workers' && document.querySelector('details:not([open]) tr') && "+
		"!document.querySelector('.tools').hidden")
	key("j")
	if eval[bool](b, "!!document.querySelector('details tr.on, details :focus')") {
		t.Error("the key j moved to a row of a closed table, want visible rows only")
	}
	key("g", "o")
	b.until("overview", "location.pathname == '/' && document.querySelector('details:not([open]) tr') && "+
		"!document.querySelector('.tools').hidden")
	key("j", "k", "j")
	b.until("a visible row", "document.querySelector('tr.on') && !document.querySelector('details tr.on')")
	key("?")
	b.until("help", "document.querySelector('#keys[open]')")
}
