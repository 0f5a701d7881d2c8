package web_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
	"example.com/runner/web"
)

// shownLines is the text of each line of the output on the page, without its
// time.
const shownLines = `[...document.querySelectorAll('#box .l')]
	.map(e => e.textContent.slice(e.firstElementChild.textContent.length).trimEnd())`

// atEnd reports whether the end of the output is in view.
const atEnd = `(o => o.scrollTop + o.clientHeight >= o.scrollHeight - 8)(document.querySelector('#box .out'))`

func TestFinishedLogOpensAtItsEndInBrowser(t *testing.T) {
	t.Parallel()
	r := open(t)
	id := shell(t, r, `seq 3000; for i in 1 2 3; do echo "  at frame $i" >&2; done; echo "ValueError: no such user" >&2; exit 1`)
	runnerkit.Drain(t, r, web1)
	s := serve(t, r, webOptions)
	testkit.Contains(t, s.page(fmt.Sprintf("/tasks/%d", id)), `Only the last <span id="shown">1,000 lines</span> are shown`,
		"Last lines of stderr")
	b := browse(t, s)
	b.screen(1280, "light")
	for name, script := range map[string]bool{"with": true, "without": false} {
		call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: !script})
		b.open(fmt.Sprintf("/tasks/%d", id))
		b.until(name+" JavaScript: the end is in view",
			`(e => (r => r.top >= 0 && r.bottom <= e.closest('.out').getBoundingClientRect().bottom + 1)(
			e.getBoundingClientRect()) || e.scrollIntoViewIfNeeded())([...document.querySelectorAll('#box .l')].at(-1))`)
		b.shot("log-finished-" + name + "-script")
		if !eval[bool](b, `document.querySelector('#state pre.error').textContent.includes('ValueError') &&
			document.querySelector('#state pre.error').compareDocumentPosition(document.querySelector('#attempts')) === 4`) {
			t.Errorf("%s JavaScript: got no error above the attempts, want it there", name)
		}
	}
}

func TestLogOfManySmallPiecesIsComplete(t *testing.T) {
	r := open(t)
	id := shell(t, r, "exit 1")
	runnerkit.Drain(t, r, web1)
	write(t, r, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
		INSERT INTO output (task_id, generation_id, seq, attempt, stream, at, data, dropped_bytes)
		SELECT ?1, (SELECT generation_id FROM attempts WHERE task_id = ?1), i, 1, 1, 1000 * i, CAST('line ' || i || char(10) AS BLOB), 0
		FROM n`, id)
	page := serve(t, r, web.ServerOptions{}).page(fmt.Sprintf("/tasks/%d", id))
	for n := range 200 {
		testkit.Contains(t, page, fmt.Sprintf("</i>line %d\n", n+1))
	}
	testkit.ContainsNone(t, page, "Only the last")
}

// TestLiveLogShowsEveryLineInBrowser follows a script that prints a thousand
// lines per second. RUNNER_LOG_SECONDS sets how many seconds it runs; default
// 4.
func TestLiveLogShowsEveryLineInBrowser(t *testing.T) {
	t.Parallel()
	seconds, _ := strconv.Atoi(os.Getenv("RUNNER_LOG_SECONDS"))
	if seconds == 0 {
		seconds = 4
	}
	r := open(t)
	s := serve(t, r, webOptions)
	b := browse(t, s)
	b.screen(1280, "light")
	dir := t.TempDir()
	id := shell(t, r, fmt.Sprintf(`echo 'begin of the log'; while [ ! -e %[1]s/go ]; do sleep 0.05; done
		for i in $(seq 0 %[2]d); do seq $((i*100+1)) $((i*100+100)); sleep 0.09; done; echo oops >&2; printf 'no newline'; exit 3`,
		dir, seconds*10-1), func(s *jobs.Spec) { s.OutputLimit = 16 << 20 }, jobs.MaxAttempts(1))
	stop := sync.OnceFunc(runnerkit.Work(t, r, web1))
	t.Cleanup(stop)
	b.open(fmt.Sprintf("/tasks/%d", id))
	b.until("output is followed", "document.querySelector('#box .out')?.textContent.includes('begin of the log')")
	eval[bool](b, "window.mine = true") // a reload of the page would remove this variable
	touch(t, dir+"/go")
	b.until("lines arrive, and the end stays in view", shownLines+".length > 300 && "+atEnd)
	b.shot("log-live-1280-light")
	eval[int](b, "document.querySelector('#box .out').scrollTop = 100")
	b.until("a button counts the new lines",
		"document.querySelector('#new').textContent.includes('new lines') && !document.querySelector('#new').hidden")
	if got := eval[float64](b, "document.querySelector('#box .out').scrollTop"); got != 100 {
		t.Errorf("got a log at %v px after the reader had scrolled to 100, want it to stay there", got)
	}
	b.shot("log-scrolled-1280-light")
	eval[bool](b, "disconnect() || updateLive(false) || true") // the connection breaks here; the page must not lose a line
	b.run(chromedp.Click("#new"))
	b.until("the end is in view", atEnd)
	testkit.Within(t, 3*time.Minute, "the task ends", func() bool { return state(t, r, id) == jobs.Failed })
	b.until("the status is updated", "document.querySelector('#head').textContent.includes('failed') && "+
		"document.querySelector('#end').textContent.includes('exit 3 after') && "+
		"document.querySelector('#state pre.error').textContent.includes('oops')")
	b.until("the last line", shownLines+".at(-1) === 'no newline'")
	wrong := eval[string](b, `(() => { const lines = `+shownLines+`.filter(l => /^[0-9]+$/.test(l))
		const at = lines.findIndex((l, i) => l !== String(i + 1))
		return at < 0 ? lines.length + ' lines' : 'line ' + (at + 1) + ' is ' + lines[at] })()`)
	if want := fmt.Sprintf("%d lines", seconds*1000); wrong != want {
		t.Errorf("got %s, want %s", wrong, want)
	}
	if !eval[bool](b, "window.mine === true && "+atEnd) {
		t.Error("the page was reloaded or is not at the end of the log, want neither")
	}
	b.shot("log-ended-1280-light")
}

func TestNextAttemptIsFollowedInBrowser(t *testing.T) {
	t.Parallel()
	r := open(t)
	s := serve(t, r, webOptions)
	b := browse(t, s)
	b.screen(1280, "light")
	dir := t.TempDir()
	id := shell(t, r, fmt.Sprintf(`n=$(($(ls %[1]s | wc -l) + 1)); seq 1500; echo "attempt $n"
		while [ ! -e %[1]s/go$n ]; do sleep 0.05; done; seq 1200; exit 4`, dir))
	stop := sync.OnceFunc(runnerkit.Work(t, r, web1))
	t.Cleanup(func() { touch(t, dir+"/go1"); touch(t, dir+"/go2"); stop() })
	testkit.Eventually(t, "the output is longer than what the page shows", func() bool {
		text := s.page(fmt.Sprintf("/tasks/%d", id))
		return strings.Contains(text, `<span id="shown">1,000 lines`) && strings.Contains(text, "</i>attempt 1\n")
	})
	b.open(fmt.Sprintf("/tasks/%d", id))
	eval[bool](b, "window.mine = true")
	b.until("output is followed", "document.querySelector('#box .out')?.textContent.includes('attempt 1')")
	touch(t, dir+"/go1")
	testkit.Eventually(t, "the first attempt ends", func() bool { return state(t, r, id) != jobs.Running })
	b.until("its end is shown", "document.querySelector('#end').textContent.includes('exit 4')")
	b.until("the number of shown lines grows", "document.querySelector('#shown').textContent === '2,200 lines'")
	if _, err := r.Retry(t.Context(), []int64{id}, runner.RetryOptions{}); err != nil {
		t.Fatal(err)
	}
	b.until("output of the second attempt is followed", "document.querySelector('#box .out').textContent.includes('attempt 2')")
	b.until("there is a link to the first attempt", "document.querySelector('#attempts a').textContent.includes('attempt 1')")
	if !eval[bool](b, "window.mine === true") {
		t.Error("the page was reloaded, want its regions replaced")
	}
	if _, err := r.Cancel(t.Context(), []int64{id}, runner.CancelOptions{}); err != nil {
		t.Fatal(err)
	}
	b.until("the cancellation is shown", "document.querySelector('#head').textContent.includes('cancelled')")
}

func TestFollowedLogContinuesAfterCursor(t *testing.T) {
	for _, script := range []string{"seq 5; printf six; printf e >&2", `printf e >&2; sleep 0.2; printf '1\n5\nsix'`} {
		t.Run(script, func(t *testing.T) { continueLog(t, script) })
	}
}

// continueLog reads the log of a script with several requests. Each request
// continues at the cursor of the previous one.
func continueLog(t *testing.T, script string) {
	r := open(t)
	id := shell(t, r, script)
	runnerkit.Drain(t, r, web1)
	s := serve(t, r, web.ServerOptions{})
	lines := func(query string) (text, cursor string) {
		t.Helper()
		req := s.request("GET", fmt.Sprintf("/tasks/%d/log?follow=1%s", id, query), nil)
		_, body, _ := s.do(req)
		batch, end, _ := strings.Cut(body, "\x1e")
		testkit.Equal(t, "end of the stream", end, "\x1fend\x1e")
		text, cursor, _ = strings.Cut(batch, "\x1f")
		return text, cursor
	}
	text, cursor := lines("")
	testkit.Contains(t, text, ">5\n", ">six\n", ">e\n", `class="l part"`, `class="l part e"`)
	text, _ = lines("&from=" + cursor)
	testkit.Contains(t, text, ">six\n", ">e\n")
	testkit.ContainsNone(t, text, ">5\n")
}
