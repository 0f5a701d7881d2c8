// Package dbtest is the conformance suite of package db. Every test runs
// against a real database: a SQLite file, a file that another program shares,
// or a PostgreSQL schema.
package dbtest

import (
	"context"
	"database/sql"
	"os"
	"slices"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/internal/taskspec"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/test/testkit"
)

// Open opens a new database and closes it at the end of the test.
func Open(t testing.TB) *db.DB { return OpenAt(t, newFile(t), db.Options{Normal: true}) }

var newFile = testkit.Template(func(path string) error {
	return create(path, db.Options{Create: true, Normal: true})
})

func create(path string, options db.Options) error {
	d, err := db.Open(context.Background(), path, options)
	if err != nil {
		return err
	}
	return d.Close()
}

// OpenAt opens the database at path and closes it at the end of the test.
func OpenAt(t testing.TB, path string, options db.Options) *db.DB {
	t.Helper()
	d, err := db.Open(t.Context(), path, options)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// OpenBeside opens a new database in the file of another program. The other
// program has tables with the same names as runner's.
func OpenBeside(t testing.TB) *db.DB {
	t.Helper()
	path := newFileBeside(t)
	t.Cleanup(func() { // this function runs after the database is closed
		app := Raw(t, path)
		defer app.Close()

		var version, tasks int
		if err := app.QueryRow(`SELECT user_version, (SELECT count(*) FROM tasks WHERE title = 'buy milk')
			FROM pragma_user_version`).Scan(&version, &tasks); err != nil {
			t.Error(err)
		}
		if version != 42 || tasks != 1 {
			t.Errorf("got user_version %d and %d tasks of the other program, want 42 and 1", version, tasks)
		}
	})
	return OpenAt(t, path, db.Options{Beside: true, Normal: true})
}

var newFileBeside = testkit.Template(func(path string) error {
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}

	app, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	defer app.Close()

	if _, err := app.Exec(`PRAGMA auto_vacuum = INCREMENTAL; PRAGMA user_version = 42; CREATE TABLE tasks (title TEXT);
		CREATE TABLE attempts (n); CREATE INDEX tasks_pending ON tasks (title);
		INSERT INTO tasks VALUES ('buy milk')`); err != nil {
		return err
	}

	return create(path, db.Options{Create: true, Beside: true, Normal: true})
})

// group holds the tests of one part of the store. Each test gets a new
// database.
type group map[string]func(s *store)

// Run runs the suite. open opens a new database for each test.
func Run(t *testing.T, open func(testing.TB) *db.DB) {
	for name, tests := range map[string]group{"insert": inserts, "claim": claims, "batch": batchTests, "fill": fillTests, "due": dues,
		"finish": finishes, "lease": leases, "hooks": hookTests, "finished": finishedTests, "metadata": metadataTests, "alert": alertTests,
		"revoke":  revocations,
		"control": controls, "waiting": waits, "pause": pauses, "prune": prunes, "output": outputs, "step": steps, "list": lists,
		"bounded list": boundedLists,
		"commit":       commits, "transaction": transactions,
		"plain SQL": plains, "fields": fieldTests, "foreign rows": foreigners, "order": orders, "unique": uniques,
		"unique keys of jobs": uniqueJobs, "drawing": drawings} {
		t.Run(name, func(t *testing.T) {
			for name, test := range tests {
				t.Run(name, func(t *testing.T) {
					s := &store{T: t, DB: open(t), now: start}
					s.record()
					test(s)
					s.checkHistory()
				})
			}
		})
	}
}

// start is the time at which every test begins. It has no fraction of a
// millisecond, because the database stores milliseconds.
var start = time.Date(2026, 1, 31, 13, 0, 0, 0, time.UTC)

const lease = time.Minute

// store is a database under test with a clock that the test controls.
type store struct {
	*testing.T
	*db.DB
	now time.Time
	raw *sql.DB
}

// stopper has the methods of testing.TB that the helper must() calls. A store
// does not implement testing.TB, because its method Output is that of db.DB,
// which has another signature.
type stopper interface {
	Helper()
	Fatal(...any)
}

// must returns a function that returns v, or ends the test if err is not nil.
// Tests use it for calls that should not fail.
func must[V any](v V, err error) func(t stopper) V {
	return func(t stopper) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// commandSpec returns the Spec of a command. The tests run no commands.
func commandSpec(options ...jobs.Option) jobs.Spec {
	return jobs.Command(command.Command{Argv: []string{"true"}}, options...)
}

// functionSpec returns the Spec of a function.
func functionSpec(job string, options ...jobs.Option) jobs.Spec {
	return jobs.Define[int](job).With(1, options...)
}

func (s *store) insert(specs ...jobs.Spec) []int64 {
	s.Helper()
	added := must(s.Insert(s.Context(), specs, s.now))(s)
	ids := make([]int64, len(added))
	for i, a := range added {
		ids[i] = a.ID
	}
	return ids
}

func (s *store) worker(names ...string) *db.Worker {
	s.Helper()
	if names == nil {
		names = []string{command.Job}
	}
	list := make([]db.ClaimJob, len(names))
	for i, name := range names {
		list[i] = db.ClaimJob{Job: name, MaxAttempts: 3}
	}

	return must(s.Register(s.Context(), db.WorkerInfo{Name: "w", Slots: 4, Lease: lease, StartedAt: s.now}, list))(s)
}

// claim runs a cycle of the worker w. The cycle makes due tasks pending and
// claims at most n tasks.
func (s *store) claim(w *db.Worker, n int) []jobs.Task {
	s.Helper()
	return must(w.Cycle(s.Context(), db.Cycle{Now: s.now, Look: true, Claim: db.Claim{Free: n, Idle: true, Lease: lease}}))(s).Claimed
}

// claimOnly claims the only claimable task. It ends the test if the worker can
// claim no task or more than one.
func (s *store) claimOnly(w *db.Worker) jobs.Task {
	s.Helper()
	claimed := s.claim(w, 2)
	if len(claimed) != 1 {
		s.Fatalf("got claims %v, want one task", ids(claimed))
	}
	return claimed[0]
}

func (s *store) finish(w *db.Worker, task jobs.Task, o taskspec.Outcome) db.Finished {
	s.Helper()
	return s.finishAll(w, db.Finish{Task: task, Outcome: s.withTimes(task, o)})[0]
}

func (s *store) finishAll(w *db.Worker, list ...db.Finish) []db.Finished {
	s.Helper()
	return must(w.Cycle(s.Context(), db.Cycle{Now: s.now, Finish: list}))(s).Finished
}

func (s *store) withTimes(task jobs.Task, o taskspec.Outcome) taskspec.Outcome {
	o.Started, o.Finished, o.Duration = task.StartedAt, s.now, s.now.Sub(task.StartedAt)
	return o
}

// get returns a task, or the zero value if there is no such task.
func (s *store) get(id int64) jobs.Task {
	s.Helper()
	tasks := must(s.List(s.Context(), jobs.Filter{IDs: []int64{id}}))(s)
	if len(tasks) == 0 {
		return jobs.Task{}
	}
	return tasks[0]
}

func (s *store) wantTask(id int64, state jobs.State, reason jobs.Reason) jobs.Task {
	s.Helper()
	got := s.get(id)
	if got.State != state || got.Reason != reason {
		s.Errorf("task %d is %s (%s), want %s (%s)", id, got.State, got.Reason, state, reason)
	}
	return got
}

// counted returns how many tasks have finished in each state, according to the
// counters of the queues.
func (s *store) counted() map[jobs.State]int {
	s.Helper()
	sum := map[jobs.State]int{}
	for _, queue := range must(s.Queues(s.Context(), start.Add(-time.Hour), s.now))(s) {
		for state, n := range queue.Ended {
			sum[state] += n
		}
	}

	return sum
}

func (s *store) attempts(id int64) []db.Attempt {
	s.Helper()
	return must(s.Attempts(s.Context(), id))(s)
}

func (s *store) sleep(d time.Duration) { s.now = s.now.Add(d) }

func ids(tasks []jobs.Task) []int64 {
	list := make([]int64, len(tasks))
	for i, t := range tasks {
		list[i] = t.ID
	}
	return list
}

func claimsOf(tasks ...jobs.Task) []db.ClaimID {
	list := make([]db.ClaimID, len(tasks))
	for i, t := range tasks {
		list[i] = db.ClaimID{ID: t.ID, GenerationID: t.GenerationID}
	}
	return list
}

func (s *store) wantIDs(got, want []int64) {
	s.Helper()
	if !slices.Equal(got, want) {
		s.Errorf("got tasks %v, want %v", got, want)
	}
}
