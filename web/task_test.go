package web_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
	"example.com/runner/web"
)

func TestTask(t *testing.T) {
	r := open(t)
	id := shell(t, r, "echo one; echo two >&2; exit 22", jobs.MaxAttempts(2), jobs.Queue("media"), jobs.Label("night"))
	s := serve(t, r, web.ServerOptions{})
	testkit.Contains(t, s.page("/tasks/1"), "no worker runs", "○</span> pending")
	runnerkit.Drain(t, r, web1) // Drain runs only the first attempt, because the second one is due in 10 s
	page := s.page(fmt.Sprintf("/tasks/%d", id))
	testkit.Contains(t, page, "↻</span> retrying", "attempt 1 of 2 failed", "waits for its next attempt at", "night: /bin/sh -c",
		">Retry now<", "exit 22 after", "one\n", `class="l e"`, `>attempt 1</a>`, `<td class="wide">exit 22</td>`,
		"runner enqueue --label night -q media --max-attempts 2")
	for path, want := range map[string]int{"/tasks/99": 404, "/tasks/0": 404, "/tasks/x": 404, "/tasks/9223372036854775808": 404,
		"/tasks/1?attempt=9": 200} {
		if status, _ := s.get(path); status != want {
			t.Errorf("%s: got status %d, want %d", path, status, want)
		}
	}
}

func TestTaskShowsProcessesThatItsCommandLeftBehind(t *testing.T) {
	r := open(t)
	shell(t, r, "sleep 60 >/dev/null 2>&1 &")
	runnerkit.Drain(t, r, web1)
	testkit.Contains(t, serve(t, r, web.ServerOptions{}).page("/tasks/1"), "<b>Processes</b> 1 that the command left behind, killed")
}

func TestTaskShowsProgressOfItsFunction(t *testing.T) {
	r := open(t)
	job := jobs.Define[string]("convert")
	r.Register(job.Handler(func(ctx context.Context, text string) error { runner.Progress(ctx, 12, 40, text); return nil }))
	runnerkit.Enqueue(t, r, job.With("page 12 <b>"))
	runnerkit.Drain(t, r, web1)
	testkit.Contains(t, serve(t, r, web.ServerOptions{}).page("/tasks/1"), "<b>Progress</b> 12/40: page 12 &lt;b&gt;")
	hidden := serve(t, r, web.ServerOptions{Options: web.Options{HideArgs: true}})
	testkit.ContainsNone(t, hidden.page("/tasks/1"), "page 12")
}

// TestOldFailureIsNotOnTop: while a retried task waits, the output of its last
// attempt belongs to that attempt.
func TestOldFailureIsNotOnTop(t *testing.T) {
	r := open(t)
	id := shell(t, r, "echo 'no space left' >&2; exit 1")
	runnerkit.Drain(t, r, web1)
	s := serve(t, r, web.ServerOptions{})
	const top = `<pre class="error"><span class="l e">`
	testkit.Contains(t, s.page("/tasks/1"), "<b>Output, stderr</b></p>"+top, "The whole output is above.")
	testkit.Equal(t, "times that the page shows the output", strings.Count(s.page("/tasks/1"), "no space left\n"), 1)
	if _, err := r.Retry(t.Context(), []int64{id}, runner.RetryOptions{}); err != nil {
		t.Fatal(err)
	}
	page := s.page("/tasks/1")
	testkit.Contains(t, page, "○</span> pending", "no space left\n")
	testkit.ContainsNone(t, page, top)
	testkit.Contains(t, s.page("/tasks/1?attempt=1"), top)
}

func TestLongOutputIsBelowItsLastLines(t *testing.T) {
	r := open(t)
	shell(t, r, "seq 100 120 >&2; echo done; echo; exit 1", jobs.MaxAttempts(2))
	runnerkit.Drain(t, r, web1)
	page := serve(t, r, web.ServerOptions{}).page("/tasks/1")
	testkit.Contains(t, page, "<b>Last lines of stderr</b>", `<a href="#end">whole output</a>`)
	testkit.ContainsNone(t, page, "The whole output is above.")
	testkit.Equal(t, "times that the page shows line 120", strings.Count(page, "</i>120\n"), 2)
}
