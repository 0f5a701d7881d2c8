package web_test

import (
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/runnerkit"
	"example.com/runner/web"
)

func TestPageOfLabel(t *testing.T) {
	r := open(t)
	for i := range 4 {
		shell(t, r, fmt.Sprintf("echo broken pipe >&2; exit %d", i%2), jobs.Label("night run/1"))
	}
	noop := jobs.Define[int]("noop")
	r.Register(noop.Handler(func(context.Context, int) error { return nil }))
	runnerkit.Enqueue(t, r, noop.With(1))
	runnerkit.Drain(t, r, web1)
	s := serve(t, r, webOptions)
	text := s.page("/jobs?label=night%20run/1")
	testkit.Contains(t, text, "night run/1", "50.0 %", "Duration p95", "broken pipe",
		"Durations of the last 4 tasks", "task 4 failed")
	testkit.Contains(t, s.page("/tasks/4"), `href="/jobs?label=night%20run%2F1"`)
	testkit.Contains(t, s.page("/jobs?job=noop"), "0.0 %", "Duration of the last task")
	testkit.Contains(t, s.page("/jobs?job=none"), "No task of this job has started.")
	if status, _ := s.get("/jobs"); status != 400 {
		t.Errorf("no job: got status %d, want 400", status)
	}
}

func TestPageOfSchedule(t *testing.T) {
	r := open(t)
	spec := jobs.Command(command.Shell("true"))
	testkit.NoError(t, r.SetSchedule(t.Context(), jobs.Schedule{Name: "backup", Cron: "30 3 * * MON", Zone: "Asia/Kolkata", Spec: spec}))
	s := serve(t, r, webOptions)
	_, body := s.post("/actions/schedule-run", url.Values{"name": {"backup"}, "back": {"/schedules/backup"}})
	if !strings.Contains(body, `<a href="/tasks/1">Show task 1</a>`) {
		t.Errorf("got no link to the added task, want it: %s", body)
	}
	runnerkit.Drain(t, r, web1)
	s.get("/zone?zone=UTC")
	text := s.page("/schedules/backup")
	testkit.Contains(t, text, "30 3 * * MON", "03:30:00 IST", "22:00:00 UTC", "Duration of the last task", "task 1 completed")
	testkit.Equal(t, "ticks", strings.Count(text, " IST</td>"), 5)
	if status, _ := s.get("/schedules/none"); status != 404 {
		t.Errorf("unknown schedule: got status %d, want 404", status)
	}
}

// TestRetryHidesNoFailure: after a retry, the page of a schedule still says
// that its task failed.
func TestRetryHidesNoFailure(t *testing.T) {
	r := open(t)
	mark := filepath.Join(t.TempDir(), "again")
	spec := jobs.Command(command.Shell("[ -e " + mark + " ] || { touch " + mark + "; echo no space left >&2; exit 1; }"))
	testkit.NoError(t, r.SetSchedule(t.Context(), jobs.Schedule{Name: "backup", Cron: "0 3 * * *", Spec: spec}))
	_, err := admin.RunSchedule(t.Context(), r, "backup")
	testkit.NoError(t, err)
	runnerkit.Drain(t, r, web1)
	s := serve(t, r, webOptions)
	testkit.Contains(t, s.page("/schedules/backup"), "no space left</div>")
	for _, state := range []jobs.State{jobs.Pending, jobs.Completed} {
		if state == jobs.Pending {
			_, err := r.Retry(t.Context(), []int64{1}, runner.RetryOptions{})
			testkit.NoError(t, err)
		} else {
			runnerkit.Drain(t, r, web1)
		}
		page := s.page("/schedules/backup")
		testkit.Contains(t, page, "exit 1 · no space left · then "+string(state),
			"<b>1 <small>100.0 %</small></b></div>", "task 1 failed, retried: "+string(state))
	}
}

// TestRunsOfJobAreFoundBehindManyPendingTasks checks that the page begins at
// the tasks that have ended last, and that it says when it has not looked at
// all tasks.
func TestRunsOfJobAreFoundBehindManyPendingTasks(t *testing.T) {
	web.LookAt(t, 1500)
	r := open(t)
	shell(t, r, "true", jobs.Label("rare"))
	runnerkit.Drain(t, r, web1)
	insertFailed(t, r, 10_000)
	write(t, r, `UPDATE tasks SET started_at = started_at - 86400000, finished_at = finished_at - 86400000 WHERE id = 1`)
	shell(t, r, "true", jobs.Label("nightly"))
	runnerkit.Drain(t, r, web1)
	for range 3 {
		shell(t, r, "true", jobs.Label("nightly"))
	}
	s := serve(t, r, webOptions)
	page := s.page("/jobs?label=nightly")
	testkit.Contains(t, page, `id="runs"`, "the last 1 tasks since")
	testkit.ContainsNone(t, page, "has started", "is a run")
	testkit.Contains(t, s.page("/jobs?label=rare"), "None of the last 1,500 tasks is a run of this label.")
}
