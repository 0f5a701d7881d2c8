package web_test

import (
	"html"
	"net/url"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/commands"
	"example.com/runner/runner/postgres"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/pgkit"
	"example.com/runner/test/testkit/runnerkit"
	"example.com/runner/web"
)

// TestPagesOfStandby serves the pages from a standby, a read-only copy of a
// PostgreSQL server, without and with --read-only.
func TestPagesOfStandby(t *testing.T) {
	primary := pgkit.Start(t)
	options := func() runner.Options { return runner.Options{Engine: postgres.Engine(), Dir: t.TempDir()} }
	r := runnerkit.OpenAt(t, primary.Address("postgres"), options())
	r.Register(commands.Handler(commands.Options{}))
	standby, err := primary.Standby(t.Context())
	testkit.NoError(t, err)
	t.Cleanup(func() { testkit.NoError(t, standby.Close()) })
	shell(t, r, "echo hello from the server", jobs.Label("greeting"))
	shell(t, r, "exit 3", jobs.MaxAttempts(1))
	runnerkit.Drain(t, r, web1)
	daily(t, r, "nightly")
	replica := runnerkit.OpenAt(t, standby.Address("postgres"), options())
	testkit.Within(t, time.Minute, "the standby has the schedule", func() bool {
		list, err := admin.Schedules(t.Context(), replica)
		return err == nil && len(list) == 1
	})

	for _, readOnly := range []bool{false, true} {
		s := serve(t, replica, web.ServerOptions{Options: web.Options{ReadOnly: readOnly}})
		for page, part := range map[string]string{"/": "default", "/tasks": "greeting", "/tasks?q=state:failed": "exit 3",
			"/tasks/1": "hello from the server", "/schedules": "nightly", "/workers": "", "/metrics": "runner_tasks"} {
			testkit.Contains(t, s.page(page), part)
		}
		want := "The server is read only"
		if readOnly {
			want = "These pages are read-only."
		}
		for path, form := range map[string]url.Values{"/actions/retry": {"id": {"2"}, "back": {"/tasks"}},
			"/actions/queue-pause": {"queue": {"default"}, "confirmed": {"1"}, "back": {"/"}}} {
			_, body := s.post(path, form)
			testkit.Contains(t, html.UnescapeString(body), want)
		}
	}
	testkit.Equal(t, "state of the task", state(t, r, 2), jobs.Failed)
}
