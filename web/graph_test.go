package web_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
)

// drawn matches a task of the drawing: its id, the words of its title, and its
// coordinates.
var drawn = regexp.MustCompile(`<(?:a href="/tasks/[0-9]+"|g) class="state ([a-z]+)"( aria-current="true")?>` +
	`<title>task ([0-9]+)([^<]*), [a-z]+</title><rect x="([0-9]+)" y="([0-9]+)"`)

// places returns the coordinates of the drawn tasks by their ids, and the ids
// in the order of the links.
func places(text string) (x, y map[string]int, order []string) {
	x, y = map[string]int{}, map[string]int{}
	for _, found := range drawn.FindAllStringSubmatch(text, -1) {
		order = append(order, found[3])
		var left, top int
		_, _ = fmt.Sscan(found[5], &left)
		_, _ = fmt.Sscan(found[6], &top)
		x[found[3]], y[found[3]] = left, top
	}
	return x, y, order
}

func TestDependenciesOfTaskAreDrawn(t *testing.T) {
	r := open(t)
	load := shell(t, r, "true", jobs.Label("load"))
	runnerkit.Drain(t, r, web1)
	clean := shell(t, r, "true", jobs.Label("clean"), jobs.DependsOn(load))
	check := shell(t, r, "true", jobs.Label("check"), jobs.DependsOnAny(load))
	merge := shell(t, r, "true", jobs.Label("merge <1>"), jobs.DependsOn(clean, check))
	mail := shell(t, r, "true", jobs.Label("mail"), jobs.DependsOn(merge), jobs.DependsOnAny(load))
	alone := shell(t, r, "true")
	s := serve(t, r, webOptions)
	text := s.page(fmt.Sprintf("/tasks/%d", clean))
	x, _, order := places(text)
	testkit.Equal(t, "tasks in the order of the columns", strings.Join(order, " "), fmt.Sprint(load, " ", clean, " ", merge, " ", mail))
	if !(x["1"] < x["2"] && x["2"] < x["4"] && x["4"] < x["5"]) {
		t.Errorf("got the places %v, want each task to the right of its dependencies", x)
	}
	testkit.Contains(t, text, "4 tasks: 1 pending, 2 blocked, 1 completed", "merge &lt;1&gt;", `class="any"`,
		`<a href="/tasks?q=id%3A1%2C2%2C4%2C5">as a list</a>`)
	if text := s.page(fmt.Sprintf("/tasks/%d", alone)); strings.Contains(text, `class="graph"`) {
		t.Error("got a drawing for a task without dependencies, want none")
	}
	testkit.Contains(t, s.page("/tasks?q=id%3A1%2C2%2C4%2C5"), `id="t1"`, `id="t2"`, `id="t4"`, `id="t5"`, "4 tasks")
}

// fan enqueues a task, n tasks that depend on it, and a task that depends on
// all of them.
func fan(t testing.TB, r *runner.Runner, n int) (first, last int64) {
	t.Helper()
	first = shell(t, r, "true", jobs.Label("split"))
	ids := many(t, r, n, func(i int) jobs.Spec {
		return jobs.Command(command.Shell("true"), jobs.DependsOn(first), jobs.Label(fmt.Sprintf("part %d of the night", i)))
	})
	return first, shell(t, r, "true", jobs.Label("join"), jobs.DependsOn(ids...))
}

func TestLongColumnIsDrawnInPart(t *testing.T) {
	r := open(t)
	first, last := fan(t, r, 150)
	s := serve(t, r, webOptions)
	text, sent := s.wire(fmt.Sprintf("/tasks/%d", first))
	_, _, order := places(text)
	testkit.Equal(t, "drawn tasks", len(order), 14)
	testkit.Contains(t, text, ">138 more tasks</text>", "152 tasks: 1 pending, 151 blocked")
	testkit.Equal(t, "lines", strings.Count(text, "<path"), 26)
	if sent > 30_000 {
		t.Errorf("got %d bytes, want at most 30000", sent)
	}
	t.Logf("a drawing of 152 tasks: %d bytes instead of %d", sent, len(text))
	fan(t, r, 10)
	testkit.Contains(t, s.page(fmt.Sprintf("/tasks/%d", last)), "152 tasks")
}

func TestLargeGraphIsDrawnInPart(t *testing.T) {
	r := open(t)
	_, last := fan(t, r, 300)
	s := serve(t, r, webOptions)
	text, sent := s.wire(fmt.Sprintf("/tasks/%d", last))
	_, _, order := places(text)
	testkit.Equal(t, "drawn tasks", len(order), 13)
	testkit.Contains(t, text, ">187 more tasks</text>", "Not drawn: 102 other tasks.")
	_, link, _ := strings.Cut(text, `aria-label="Drawing of `)
	_, link, _ = strings.Cut(link, `<a href="/tasks?`)
	link, _, _ = strings.Cut(link, `"`)
	testkit.Contains(t, s.page("/tasks?"+link), "187 tasks")
	if sent > 30_000 {
		t.Errorf("got %d bytes, want at most 30000", sent)
	}
	many, _ := fan(t, r, 2000)
	testkit.Contains(t, s.page(fmt.Sprintf("/tasks/%d", many)), "Not drawn: more than 801 other tasks.")
}

// TestDenseGraphHasFewLines draws 60 tasks; each of them depends on all earlier
// ones.
func TestDenseGraphHasFewLines(t *testing.T) {
	r := open(t)
	var all []int64
	for range 60 {
		all = append(all, shell(t, r, "true", jobs.DependsOn(all...)))
	}
	s := serve(t, r, webOptions)
	text, sent := s.wire(fmt.Sprintf("/tasks/%d", all[30]))
	x, _, order := places(text)
	testkit.Equal(t, "drawn tasks", len(order), 60)
	for i, id := range all[1:] {
		if x[fmt.Sprint(id)] <= x[fmt.Sprint(all[i])] {
			t.Errorf("task %d: got x %d, want it to the right of task %d at %d", id, x[fmt.Sprint(id)], all[i], x[fmt.Sprint(all[i])])
		}
	}
	testkit.Contains(t, text, "Not drawn: 1,370 long lines.")
	if sent > 30_000 {
		t.Errorf("got %d bytes, want at most 30000", sent)
	}
}

// spread changes the times of the finished tasks and of their worker, as if the
// tasks had run in the last ten minutes.
func spread(t testing.TB, r *runner.Runner) {
	t.Helper()
	now := time.Now().UnixMilli()
	for _, text := range []string{`UPDATE tasks SET started_at = ?1 - (100 - id) * 5700, finished_at = ?1 - (100 - id) * 5700 +
		CASE WHEN id % 3 = 0 THEN 15000 WHEN id > 60 THEN 900 ELSE 4000 END`,
		`UPDATE attempts SET started_at = ?1 - (100 - task_id) * 5700, finished_at = ?1 - (100 - task_id) * 5700 + 9000`,
		`UPDATE workers SET started_at = ?1 - 560000, ended_at = ?1 - 50000`} {
		write(t, r, text, now)
	}
}

func TestDrawingsInBrowser(t *testing.T) {
	testkit.NeedFull(t)
	t.Parallel()
	r := open(t)
	many(t, r, 90, func(i int) jobs.Spec {
		return jobs.Command(command.Shell(fmt.Sprintf("exit %d", i%20/19)), jobs.MaxAttempts(1))
	})
	runnerkit.Drain(t, r, web1)
	spread(t, r)
	load := shell(t, r, "true", jobs.Label("load yesterday from the shop"))
	failed := shell(t, r, "exit 1", jobs.Label("check stock"), jobs.MaxAttempts(1))
	runnerkit.Drain(t, r, web1)
	clean := shell(t, r, "true", jobs.Label("clean"), jobs.DependsOn(load))
	prices := shell(t, r, "true", jobs.Label("prices"), jobs.DependsOn(load))
	merge := shell(t, r, "true", jobs.Label("merge"), jobs.DependsOn(clean, prices), jobs.DependsOnAny(failed))
	report := shell(t, r, "true", jobs.Label("report"), jobs.DependsOn(merge))
	shell(t, r, "true", jobs.Label("mail"), jobs.DependsOn(report), jobs.DependsOnAny(load))
	split, _ := fan(t, r, 150)
	chain := split
	for range 12 {
		chain = shell(t, r, "true", jobs.DependsOn(chain))
	}
	testkit.NoError(t, admin.PauseQueues(t.Context(), r, []string{"default"}, admin.PauseOptions{}))
	film := shell(t, r, "sleep 60", jobs.Queue("media"), jobs.Label("holiday.mov"))
	runnerkit.Work(t, r, web1)
	t.Cleanup(func() { // else the worker waits for it
		_, _ = r.Cancel(context.WithoutCancel(t.Context()), []int64{film}, runner.CancelOptions{})
	})
	b := browse(t, serve(t, r, webOptions))
	for name, path := range map[string]string{"graph": fmt.Sprintf("/tasks/%d", merge), "column": fmt.Sprintf("/tasks/%d", split),
		"long": fmt.Sprintf("/tasks/%d", chain), "slots": "/workers"} {
		for _, width := range []int{390, 1280} {
			for _, theme := range looks() {
				b.screen(width, theme)
				b.open(path)
				b.fits(name, width)
				b.shot(fmt.Sprintf("drawing-%s-%d-%s", name, width, theme))
			}
		}
	}
	b.open(fmt.Sprintf("/tasks/%d", chain))
	b.until("the task of the page is in view", `(() => { const box = document.querySelector(".graph").getBoundingClientRect(),
		at = document.querySelector(".graph [aria-current]").getBoundingClientRect()
		return at.right <= box.right && at.left >= box.left })()`)
}
