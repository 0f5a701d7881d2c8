package web_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"

	"example.com/runner/test/testkit"
)

// axe returns the source of axe-core, which checks pages for problems of
// accessibility. It looks for axe-core in NODE_PATH, and skips the test if
// axe-core is not installed.
func axe(t *testing.T) string {
	t.Helper()
	for _, dir := range filepath.SplitList(os.Getenv("NODE_PATH")) {
		if text, err := os.ReadFile(filepath.Join(dir, "axe-core", "axe.min.js")); err == nil {
			return string(text)
		}
	}
	t.Skip("axe-core is not installed; use npm install axe-core, and set NODE_PATH")
	return ""
}

// audit is a script that returns the findings of axe-core, one per line.
const audit = `axe.run(document, {resultTypes: ['violations'], rules: {'target-size': {enabled: true},
	'label-content-name-mismatch': {enabled: true}, 'focus-order-semantics': {enabled: true}}}).then(all =>
	all.violations.flatMap(v => v.nodes.map(n =>
		v.impact + ' ' + v.id + ': ' + n.target.join(' ') + ': ' + (n.failureSummary || '').replace(/\s+/g, ' '))).join('\n'))`

// small returns the elements that a user can click and that are smaller than 24
// by 24 pixels, one per line. It leaves out links in sentences, and the bars of
// a chart, whose links are also in a table. For a check box, it measures the
// label.
const small = `[...document.querySelectorAll('a[href], button, input:not([type=hidden]), select, summary')].filter(e => {
	const box = (e.closest('label') || e).getBoundingClientRect(), parent = e.parentElement
	const inSentence = e.matches('a') && getComputedStyle(e).display === 'inline' &&
		[...parent.childNodes].some(n => n.nodeType === 3 && n.textContent.trim())
	return e.checkVisibility() && box.width > 1 && !inSentence && !e.closest('.bars') && !e.matches('.hidden, .skip') &&
		(box.width < 23.95 || box.height < 23.95)
}).map(e => (b => 'small target ' + Math.round(b.width) + 'x' + Math.round(b.height) + ' px: ' + e.outerHTML.slice(0, 120))(
	(e.closest('label') || e).getBoundingClientRect())).slice(0, 8).join('\n')`

// visit is a page, and what the user does there.
type visit struct {
	name, path string
	then       func()
}

// press returns a function that clicks a button again and again until what it
// shows exists. Both are selectors.
func (b *browser) press(button, shown string) func() {
	return func() {
		b.t.Helper()
		b.until(shown, fmt.Sprintf(`document.querySelector(%q) || document.querySelector(%q).click()`, shown, button))
	}
}

// visits returns all pages of the sample database.
func visits(b *browser, tasks map[string]string) []visit {
	unfold := func() { eval[bool](b, `document.querySelector("main details").open = true`) }
	return []visit{
		{"overview", "/", nil},
		{"figures", "/?range=24h", unfold},
		{"tasks", "/tasks", nil},
		{"failed", "/tasks?q=state:failed", nil},
		{"sorted", "/tasks?q=state:scheduled&sort=due", nil},
		{"grouped", "/tasks?q=state:failed&sort=cause", nil},
		{"pause", "/", b.press("button[aria-label='Pause mail']", "#ask[open]")},
		{"question", "/tasks?q=state:failed", b.press("#bulk form:not(#selection) button", "#ask[open]")},
		{"keys", "/tasks", b.press("#help", "#keys[open]")},
		{"mistake", "/tasks?q=quue:x", nil},
		{"none", "/tasks?q=nothing-is-called-so", nil},
		{"task", tasks["task"], unfold},
		{"function", tasks["function"], nil},
		{"colours", tasks["colours"], nil},
		{"chain", tasks["chain"], nil},
		{"fan", tasks["fan"], nil},
		{"workers", "/workers", unfold},
		{"schedules", "/schedules", nil},
		{"schedule", "/schedules/report", nil},
		{"label", "/jobs?label=webhook", nil},
		{"job", "/jobs?job=email.send", nil},
		{"missing", "/tasks/4711", func() { b.expect("404") }},
		{"login", "/login", nil},
	}
}

// eachVisit checks each page in all themes and at two widths.
func eachVisit(b *browser, pages []visit, themes []string, check func(name string, width int, theme string)) {
	b.t.Helper()
	for _, width := range []int{390, 1280} {
		for _, theme := range themes {
			b.screen(width, theme)
			for _, page := range pages {
				b.open(page.path)
				if page.then != nil {
					page.then()
				}
				check(page.name, width, theme)
			}
		}
	}
}

func (b *browser) audit(text, name string, width int, theme string) {
	b.t.Helper()
	eval[chromedp.Void](b, text)
	found, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](audit, chromedp.EvalAwaitPromise))
	testkit.NoError(b.t, err)
	testkit.Equal(b.t, fmt.Sprintf("%s, %d px, %s: findings", name, width, theme), found, "")
}

func TestPagesAreAccessible(t *testing.T) {
	t.Parallel()
	text := axe(t)
	r := open(t)
	tasks := sampleDatabase(t, r)
	b := browse(t, serve(t, r, webOptions))
	eachVisit(b, visits(b, tasks), themes, func(name string, width int, theme string) { b.audit(text, name, width, theme) })
}

func TestTargetsAreLargeEnough(t *testing.T) {
	t.Parallel()
	r := open(t)
	tasks := sampleDatabase(t, r)
	b := browse(t, serve(t, r, webOptions))
	eachVisit(b, visits(b, tasks), []string{"light"}, func(name string, width int, _ string) {
		testkit.Equal(t, fmt.Sprintf("%s at %d px: small targets", name, width), eval[string](b, small), "")
		testkit.Equal(t, name+": elements with a name and without a role", eval[string](b, `[...document.querySelectorAll('[aria-label]')].
			filter(e => e.matches('pre, div, span, p') && !e.role).map(e => e.className).join()`), "")
	})
}
