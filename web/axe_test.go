package web_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// axe returns the source of axe-core, which checks pages for problems of accessibility. It looks for axe-core in NODE_PATH, and skips the
// test if axe-core is not installed.
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

// audit returns the findings of axe-core, one per line.
const audit = `axe.run(document, {resultTypes: ['violations'], rules: {'target-size': {enabled: true},
	'label-content-name-mismatch': {enabled: true}, 'focus-order-semantics': {enabled: true}}}).then(all =>
	all.violations.flatMap(v => v.nodes.map(n =>
		v.impact + ' ' + v.id + ': ' + n.target.join(' ') + ': ' + (n.failureSummary || '').replace(/\s+/g, ' '))).join('\n'))`

func TestPagesAreAccessible(t *testing.T) {
	text := axe(t)
	r := open(t)
	tasks := sampleDatabase(t, r)
	b := browse(t, serve(t, r, webOptions))
	press := func(button, shown string) func() {
		return func() {
			t.Helper()
			b.until(shown, fmt.Sprintf(`document.querySelector(%q) || document.querySelector(%q).click()`, shown, button))
		}
	}
	pages := []struct {
		name, path string
		then       func() // what the user does on the page before the check
	}{
		{"overview", "/", nil},
		{"figures", "/?range=24h", func() { eval[bool](b, `document.querySelector("details").open = true`) }},
		{"tasks", "/tasks", nil},
		{"failed", "/tasks?q=state:failed", nil},
		{"sorted", "/tasks?q=state:scheduled&sort=due", nil},
		{"grouped", "/tasks?q=state:failed&sort=cause", nil},
		{"pause", "/", press("button[aria-label='Pause mail']", "#ask[open]")},
		{"question", "/tasks?q=state:failed", press("#bulk form:not(#selection) button", "#ask[open]")},
		{"keys", "/tasks", press("#help", "#keys[open]")},
		{"mistake", "/tasks?q=quue:x", nil},
		{"none", "/tasks?q=nothing-is-called-so", nil},
		{"task", tasks["task"], func() { eval[bool](b, `document.querySelector("details").open = true`) }},
		{"function", tasks["function"], nil},
		{"colours", tasks["colours"], nil},
		{"chain", tasks["chain"], nil},
		{"fan", tasks["fan"], nil},
		{"dependencies", tasks["fan"] + "/dependencies", nil},
		{"workers", "/workers", func() { eval[bool](b, `document.querySelector("details").open = true`) }},
		{"schedules", "/schedules", nil},
		{"schedule", "/schedules/report", nil},
		{"label", "/jobs?label=webhook", nil},
		{"job", "/jobs?job=email.send", nil},
		{"missing", "/tasks/4711", func() { b.expect("404") }},
		{"login", "/login", nil},
	}
	for _, width := range []int{390, 1280} {
		for _, theme := range themes {
			b.screen(width, theme)
			call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
				// with reduced motion, colours change at once and not in a transition
				{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}}})
			for _, page := range pages {
				b.open(page.path)
				if page.then != nil {
					page.then()
				}
				eval[chromedp.Void](b, text)
				found, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](audit, chromedp.EvalAwaitPromise))
				if err != nil {
					t.Fatal(err)
				}
				for _, line := range strings.Split(found, "\n") {
					if line != "" {
						t.Errorf("%s, %d px, %s: got the finding %s, want none", page.name, width, theme, line)
					}
				}
			}
		}
	}
}
