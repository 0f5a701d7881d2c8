package web_test

import (
	"database/sql"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// barHeights returns the heights of the bars for a state, and the links of
// these bars.
func barHeights(t *testing.T, text, state string) (heights []float64, links []string) {
	t.Helper()
	bar := regexp.MustCompile(`<a href="([^"]*)"[^>]*><title>[^<]*</title>(?:<rect class="hit"[^>]*>)?<rect class="` + state +
		`"[^>]* height="([0-9.]+)"`)
	for _, found := range bar.FindAllStringSubmatch(text, -1) {
		height, err := strconv.ParseFloat(found[2], 64)
		testkit.NoError(t, err)
		heights, links = append(heights, height), append(links, strings.ReplaceAll(found[1], "&amp;", "&"))
	}
	return heights, links
}

// write executes a statement in the database of r, as another program does.
func write(t testing.TB, r *runner.Runner, statement string, args ...any) {
	t.Helper()
	pool, err := sql.Open("sqlite", "file:"+admin.Path(r)+"?_pragma=busy_timeout(10000)")
	testkit.NoError(t, err)
	defer pool.Close()
	if _, err := pool.Exec(statement, args...); err != nil {
		t.Fatal(err)
	}
}

func TestFailuresHaveScaleOfTheirOwn(t *testing.T) {
	r := open(t)
	for range 3 {
		shell(t, r, "exit 1")
	}
	runnerkit.Drain(t, r, web1)
	write(t, r, `INSERT INTO counters (queue, state, minute, n) SELECT queue, 'completed', minute, 40 FROM counters WHERE state = 'failed'`)
	s := serve(t, r, webOptions)
	text := s.page("/?range=1h")
	heights, links := barHeights(t, text, "failed")
	total, listed := 0.0, 0
	for i, height := range heights {
		total += height
		listed += strings.Count(s.page(links[i]), `<tr id="t`)
	}
	// The three failures are usually in the same minute. Then one bar shows
	// them, on a scale that ends at 4. If the next minute begins between two
	// failures, two bars show them, on a scale that ends at 2. The checks below
	// accept one bar and two bars.
	if total < 30 {
		t.Errorf("got %v px for 3 failures beside 40 completed tasks, want at least 30", heights)
	}
	testkit.Equal(t, "failed tasks behind the links of the bars", listed, 3)
	testkit.Contains(t, text, " failed</title>", "Times in ", "percentiles of the last 3 tasks that ran")
}

func TestBarsAreProportional(t *testing.T) {
	r := open(t)
	ended := func(minute time.Time, state string, n int) {
		t.Helper()
		write(t, r, `INSERT INTO counters (queue, state, minute, n) VALUES ('default', ?, ?, ?)`, state, minute.Unix()/60, n)
	}
	now := time.Now()
	ended(now.Add(-20*time.Minute), "failed", 1)
	ended(now.Add(-10*time.Minute), "failed", 40)
	heights, _ := barHeights(t, serve(t, r, webOptions).page("/?range=1h"), "failed")
	if want := []float64{1.1, 46}; !slices.Equal(heights, want) && !slices.Equal(heights, []float64{1.2, 46}) {
		t.Errorf("got heights %v of 1 and 40 failures, want %v", heights, want)
	}
}

func TestChartInBrowser(t *testing.T) {
	t.Parallel()
	r := open(t)
	shell(t, r, "exit 1")
	shell(t, r, "true")
	runnerkit.Drain(t, r, web1)
	b := browse(t, serve(t, r, webOptions))
	b.open("/?range=1h")
	eval[string](b, `document.querySelector(".bars a:not([tabindex])").focus() || ""`)
	b.run(chromedp.KeyEvent(kb.ArrowLeft))
	b.until("the arrow key moves to the bar of the completed task",
		`document.activeElement.querySelector("title").textContent.includes("1 completed")`)
	b.until("the numbers of the bar are visible", `getComputedStyle(document.activeElement.querySelector(".tip")).visibility == "visible"`)
	b.run(chromedp.KeyEvent("\r"))
	b.until("the bar leads to its task", `location.pathname == "/tasks" && document.querySelector("#t2") && !document.querySelector("#t1")`)

	b.open("/?range=1h")
	b.run(chromedp.KeyEvent("j"))
	b.until("the first row is a queue", `document.querySelector("#queues tr.on")`)
}

func TestTimesAreInZoneOfBrowser(t *testing.T) {
	r := open(t)
	shell(t, r, "true")
	runnerkit.Drain(t, r, web1)
	s := serve(t, r, webOptions)
	for _, name := range []string{"Asia/Kolkata", "UTC"} {
		status, body := s.get("/zone?zone=" + name + "&back=/%3Frange=1h")
		testkit.Equal(t, "status", status, 200)
		place, err := time.LoadLocation(name)
		testkit.NoError(t, err)
		testkit.Contains(t, body, time.Now().In(place).Format("MST"), "<b>"+name+"</b>")
	}
	if status, _ := s.get("/zone?zone=Mars/Olympus"); status != 400 {
		t.Errorf("unknown zone: got status %d, want 400", status)
	}
	testkit.Contains(t, s.page("/"), "<b>UTC</b>")
}
