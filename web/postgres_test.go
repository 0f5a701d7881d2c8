package web_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/commands"
	"example.com/runner/runner/postgres"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/pgkit"
	"example.com/runner/test/testkit/runnerkit"
	"example.com/runner/web"
)

// TestPagesAndMetricsOnPostgreSQL checks the pages and metrics of a PostgreSQL
// database.
func TestPagesAndMetricsOnPostgreSQL(t *testing.T) {
	options := runner.Options{Engine: postgres.Engine(), Dir: t.TempDir()}
	at := pgkit.Start(t).Address("postgres")
	r := runnerkit.OpenAt(t, at, options)
	r.Register(commands.Handler(commands.Options{}))

	s := serve(t, r, web.ServerOptions{})
	shell(t, r, "echo hello from the server", jobs.Label("greeting"))
	shell(t, r, "exit 3", jobs.Queue("media"), jobs.MaxAttempts(1))
	daily(t, r, "nightly")
	runnerkit.Drain(t, r, runner.WorkOptions{Concurrency: 2})
	shell(t, r, "true", jobs.Queue("media"))
	shell(t, r, "true", jobs.DependsOn(3))
	for page, part := range map[string]string{"/": "media", "/tasks": "greeting", "/tasks?q=state:failed": "exit 3",
		"/tasks?q=state:failed&sort=cause": "1 failed task in 1 group", "/tasks?q=state:failed%20queue:none&sort=cause": "No task matches",
		"/tasks/1": "hello from the server", "/schedules": "nightly",
		"/workers": "2 runs: 1 completed, 1 failed", "/tasks/4": "2 tasks: 1 pending, 1 blocked"} {
		if text := s.page(page); !strings.Contains(text, part) {
			t.Errorf("%s: got a page without %q, want it there:\n%s", page, part, text)
		}
	}
	families := scrape(t, s)
	for name, labels := range map[string][]string{"runner_attempts_total": {"queue=media", "job=command", "result=exit"},
		"runner_tasks": {"queue=media", "state=pending"}} {
		if got := value(families, name, labels...); got != 1 {
			t.Errorf("%s%v: got %v, want 1", name, labels, got)
		}
	}
	if got := value(families, "runner_db_bytes", "file=db"); got <= 0 {
		t.Errorf("runner_db_bytes: got %v, want a size above 0", got)
	}

	// The pages also work with a role that may only read.
	admin, err := pgx.Connect(t.Context(), at)
	testkit.NoError(t, err)
	_, err = admin.Exec(t.Context(), "CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA runner TO reader; "+
		"GRANT SELECT ON ALL TABLES IN SCHEMA runner TO reader")
	if err = errors.Join(err, admin.Close(t.Context())); err != nil {
		t.Fatal(err)
	}
	options.Dir = t.TempDir()
	s = serve(t, runnerkit.OpenAt(t, strings.Replace(at, "//postgres@", "//reader@", 1), options), web.ServerOptions{
		Options: web.Options{ReadOnly: true}})
	for page, part := range map[string]string{"/": "media", "/tasks?q=state:failed": "exit 3", "/tasks/1": "hello from the server",
		"/metrics": "runner_tasks"} {
		if text := s.page(page); !strings.Contains(text, part) {
			t.Errorf("%s as a reader: got a page without %q, want it there:\n%s", page, part, text)
		}
	}
}
