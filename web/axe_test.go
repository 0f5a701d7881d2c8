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

// axe is the text of axe-core, an auditor of accessibility, where NODE_PATH has it; without it the test is skipped.
func axe(t *testing.T) string {
	t.Helper()
	for _, dir := range filepath.SplitList(os.Getenv("NODE_PATH")) {
		if text, err := os.ReadFile(filepath.Join(dir, "axe-core", "axe.min.js")); err == nil {
			return string(text)
		}
	}
	t.Skip("there is no axe-core: npm install axe-core, and NODE_PATH to where it is")
	return ""
}

// audit lists what axe-core has against the page: serious and critical findings, a line each.
const audit = `axe.run(document, {resultTypes: ['violations']}).then(all => all.violations.filter(v => v.impact === 'serious' || v.impact === 'critical').flatMap(
	v => v.nodes.map(n => v.impact + ' ' + v.id + ': ' + n.target.join(' ') + ': ' + (n.failureSummary || '').replace(/\s+/g, ' '))).join('\n'))`

func TestPagesAreAccessible(t *testing.T) {
	text := axe(t)
	r := open(t)
	tasks := lively(t, r)
	b := browse(t, serve(t, r, webOptions))
	press := func(button, shown string) func() {
		return func() {
			t.Helper()
			b.until(shown, fmt.Sprintf(`document.querySelector(%q) || document.querySelector(%q).click()`, shown, button))
		}
	}
	pages := []struct {
		name, path string
		then       func() // what a person does there
	}{
		{"overview", "/", nil},
		{"figures", "/?range=24h", func() { eval[bool](b, `document.querySelector("details").open = true`) }},
		{"tasks", "/tasks", nil},
		{"failed", "/tasks?q=state:failed", nil},
		{"question", "/tasks?q=state:failed", press("#pager form[action$=retry] button", "#ask[open]")},
		{"keys", "/tasks", press("#help", "#keys[open]")},
		{"mistake", "/tasks?q=quue:x", nil},
		{"none", "/tasks?q=nothing-is-called-so", nil},
		{"task", tasks["task"], func() { eval[bool](b, `document.querySelector("details").open = true`) }},
		{"function", tasks["function"], nil},
		{"colours", tasks["colours"], nil},
		{"chain", tasks["chain"], nil},
		{"schedules", "/schedules", nil},
		{"missing", "/tasks/4711", func() { b.expect("404") }},
		{"login", "/login", nil},
	}
	for _, width := range []int{320, 1280} {
		for _, theme := range themes {
			b.screen(width, theme)
			call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
				{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"}}}) // a colour on its way is none
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
						t.Error(fmt.Sprintf("%s, %d px, %s: ", page.name, width, theme) + line)
					}
				}
			}
		}
	}
}
