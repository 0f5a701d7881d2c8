package web_test

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// failures lets n tasks of a queue fail with an exit status.
func failures(t *testing.T, r *runner.Runner, queue string, status, n int) {
	t.Helper()
	for range n {
		shell(t, r, fmt.Sprintf("exit %d", status), jobs.Queue(queue))
	}
	runnerkit.Drain(t, r, web1)
}

func TestGroupsHoldStillUnderMouse(t *testing.T) {
	t.Parallel()
	r := open(t)
	failures(t, r, "default", 1, 3)
	failures(t, r, "default", 2, 2)
	b := browse(t, serve(t, r, webOptions))
	b.screen(1280, "light")
	b.open("/tasks?q=state:failed&sort=cause")
	b.connected()
	const order = "$$('#rows tbody tr').map(row => $('th', row).textContent + $('.cause', row).textContent).join()"
	testkit.Equal(t, "groups", eval[string](b, order), "3 ×exit 1,2 ×exit 2")
	b.point("#rows tbody tr:first-child button")
	failures(t, r, "default", 2, 2) // two more failures make the second group the largest
	b.until("the numbers of the rows change in their places", order+" === '3 ×exit 1,4 ×exit 2' && $('#live').textContent.includes('held')")
	b.point("footer")
	b.until("the largest group is first when the mouse is elsewhere", order+" === '4 ×exit 2,3 ×exit 1'")
}

func TestProblemsHoldStillUnderMouse(t *testing.T) {
	t.Parallel()
	r := open(t)
	stop := runnerkit.Work(t, r, web1) // without a worker, the page would show one more problem
	defer stop()
	failures := func(queue string, n int) {
		t.Helper()
		for range n {
			id := shell(t, r, "exit 1", jobs.Queue(queue))
			testkit.Eventually(t, "it fails", func() bool { return state(t, r, id) == jobs.Failed })
		}
	}
	failures("mail", 1)
	b := browse(t, serve(t, r, webOptions))
	b.screen(1280, "light")
	b.open("/")
	b.connected()
	const under = "document.elementFromPoint(at.x, at.y).closest('.problem,tr')?.textContent.includes('mail')"
	point := func(selector string) {
		t.Helper()
		b.point(selector)
		eval[bool](b, fmt.Sprintf("(r => { window.at = {x: r.x + r.width / 2, y: r.y + r.height / 2}; return true })("+
			"$(%q).getBoundingClientRect())", selector))
	}
	point(".problem .button")
	failures("alpha", 2)
	b.until("the page knows of the other problem, and the row stays", "$('#queues').textContent.includes('alpha') && "+under)
	b.until("the page says so", "$('#live').textContent.includes('held')")
	b.point("footer")
	b.until("both problems", "$$('.problem').length === 2")

	point("#queues [aria-label='Pause mail']")
	failures("beta", 1)
	b.until("a problem above the row appears, and the row stays under the mouse", "$$('.problem').length === 3 && "+under)
	b.until("the new row of the table waits", "!$('#queues').textContent.includes('beta')")
	b.point("footer")
	b.until("the new row", "$('#queues').textContent.includes('beta')")
}

func TestNoRowHasIdOfAnotherElement(t *testing.T) {
	t.Parallel()
	r := open(t)
	for _, name := range []string{"ask", "box", "ueues"} {
		shell(t, r, "exit 1", jobs.Queue(name))
		s := jobs.Schedule{Name: name, Cron: "0 3 * * *", Spec: jobs.Command(command.Shell("true"), jobs.Queue(name))}
		testkit.NoError(t, r.SetSchedule(t.Context(), s))
	}
	runnerkit.Drain(t, r, web1)
	b := browse(t, serve(t, r, webOptions))
	for _, path := range []string{"/", "/schedules", "/tasks", "/tasks?q=state:failed&sort=cause"} {
		b.open(path)
		b.run(chromedp.WaitVisible(".tools"))
		testkit.Equal(t, path+": ids that are used twice", eval[string](b, `(all => all.filter((id, i) => all.indexOf(id) !== i).join())(
			[...document.querySelectorAll('[id]')].map(e => e.id))`), "")
	}
}
