package postgres_test

import (
	"testing"
	"time"

	"example.com/runner/internal/ui"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/postgres"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/pgkit"
)

// roles are the statements of docs/postgres.md that create three roles: one
// that owns the tables, one that works and one that only reads.
var roles = []string{
	"CREATE ROLE runner_owner LOGIN", "CREATE ROLE runner_work LOGIN", "CREATE ROLE runner_read LOGIN",
	"CREATE SCHEMA runner AUTHORIZATION runner_owner",
	"GRANT USAGE ON SCHEMA runner TO runner_work, runner_read",
	"ALTER DEFAULT PRIVILEGES FOR ROLE runner_owner IN SCHEMA runner GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO runner_work",
	"ALTER DEFAULT PRIVILEGES FOR ROLE runner_owner IN SCHEMA runner GRANT SELECT ON TABLES TO runner_read",
}

func TestRolesHaveRightsThatTheyNeed(t *testing.T) {
	at := pgkit.Shared(t).Address("postgres") // no other test on this server uses the schema named runner
	connection(t, at, roles...)
	open(t, as(t, at, "runner_owner", ""), runner.Options{})
	address := map[string]string{}
	for _, role := range []string{"runner_work", "runner_read"} {
		address[role] = as(t, at, role, "")
	}

	worker := open(t, address["runner_work"], runner.Options{})
	var seen runs
	worker.Register(count.Handler(seen.handle))
	stop := work(t, worker)
	task, err := worker.Enqueue(t.Context(), count.With(1, jobs.Unique("one"), jobs.Lane("a")))
	testkit.NoError(t, err)
	testkit.NoError(t, admin.SetLimit(t.Context(), worker, admin.Limit{Target: admin.Target{Kind: admin.AllTarget}, Running: 5}))
	testkit.NoError(t, worker.SetSchedule(t.Context(), jobs.Schedule{Name: "nightly", Cron: "0 3 * * *", Spec: count.With(2)}))
	done, err := worker.Await(t.Context(), task.ID)
	testkit.NoError(t, err)
	testkit.Equal(t, "state", done.State, jobs.Completed)
	stop()
	_, err = worker.Delete(t.Context(), []int64{task.ID})
	testkit.NoError(t, err)
	for _, role := range []string{"runner_work", "runner_read"} {
		conn := connection(t, address[role])
		for _, text := range []string{"DROP TABLE runner.tasks", "ALTER TABLE runner.tasks ADD COLUMN more TEXT",
			"DROP SCHEMA runner CASCADE",
			"CREATE TABLE runner.mine (n INT)", "TRUNCATE runner.tasks", "CREATE INDEX ON runner.tasks (label)",
			"CREATE TRIGGER mine BEFORE INSERT ON runner.tasks EXECUTE FUNCTION runner.schedules_keep()"} {
			if _, err := conn.Exec(t.Context(), text); err == nil {
				t.Errorf("%s as %s: got no error, want one", text, role)
			}
		}
	}

	reader := open(t, address["runner_read"], runner.Options{})
	_, err = reader.List(t.Context(), jobs.Filter{})
	testkit.NoError(t, err)
	_, err = ui.ReadStatus(t.Context(), reader, time.Now(), nil)
	testkit.NoError(t, err)
	_, err = reader.EnqueueMany(t.Context(), count.With(1))
	testkit.ErrorIs(t, err, jobs.ErrPermission, "permission denied for table")
}

// TestMissingRightsAreNamed opens a database as a role without rights. Each
// error has the answer of the server. Then the test grants the right.
func TestMissingRightsAreNamed(t *testing.T) {
	s := pgkit.Shared(t)
	const name = "missing_rights"
	root := connection(t, s.Address("postgres"), `CREATE ROLE "Eve" LOGIN`)
	at := s.Address("postgres", "search_path="+name)
	try := func(want string) {
		t.Helper()
		r, err := runner.Open(t.Context(), as(t, at, "Eve", ""), runner.Options{Engine: postgres.Engine(), Dir: t.TempDir()})
		if err == nil {
			_, err = r.EnqueueMany(t.Context(), count.With(1))
			r.Close()
		}
		testkit.ErrorIs(t, err, jobs.ErrPermission, "permission denied for "+want)
	}
	try("database postgres")
	run(t, root, "CREATE SCHEMA "+name)
	try("schema " + name)
	run(t, root, "GRANT USAGE ON SCHEMA "+name+` TO "Eve"`)
	try("schema " + name)
	testkit.NoError(t, open(t, at, runner.Options{}).Close()) // the owner creates the tables
	try("table ")
	run(t, root, "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA "+name+` TO "Eve"`)
	testkit.NoError(t, open(t, as(t, at, "Eve", ""), runner.Options{}).Close())
}
