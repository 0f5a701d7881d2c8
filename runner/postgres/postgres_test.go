package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"example.com/runner/db/pgdriver"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/runner/postgres"
	"example.com/runner/test/pgserver"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/pgkit"
	"example.com/runner/test/testkit/runnerkit"
)

func TestMain(m *testing.M) {
	code := m.Run()
	pgkit.CloseShared()
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, "after all tests:", err)
		code = 1
	}
	os.Exit(code)
}

// proxied returns two addresses of a new schema. The first address is that of
// the server, and the second one is that of a proxy to the server.
func proxied(t *testing.T) (direct, through string, p *proxy) {
	t.Helper()
	server, schema := pgkit.Shared(t), pgkit.NewSchema()
	p = newProxy(t, filepath.Join(server.Dir, ".s.PGSQL.5432"))
	return server.Address("postgres", "search_path="+schema),
		fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable&search_path=%s", p.Addr(), schema), p
}

func open(t *testing.T, address string, options runner.Options) *runner.Runner {
	t.Helper()
	options.Engine = postgres.Engine()
	if options.Dir == "" {
		options.Dir = t.TempDir()
	}
	return runnerkit.OpenAt(t, address, options)
}

// work runs the jobs of r until the returned function is called.
func work(t *testing.T, r *runner.Runner, options ...runner.WorkOptions) (stop func()) {
	t.Helper()
	var o runner.WorkOptions
	for _, o = range options {
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Work(ctx, o) }()
	go func() {
		select {
		case err := <-done:
			t.Errorf("got the end of the work with error %v, want it to continue", err)
			done <- nil
		case <-ctx.Done():
		}
	}()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Errorf("work: got error %v, want none or context.Canceled", err)
		}
	})
}

const patience = 2 * time.Minute

var count = jobs.Define[int]("count")

// runs counts the runs of each task. It also counts the cases in which two
// attempts of one task ran at the same time.
type runs struct {
	mu        sync.Mutex
	running   map[int]int
	finished  map[int]int
	overlaps  int
	completed atomic.Int64
}

func (s *runs) handle(_ context.Context, n int) error {
	s.mu.Lock()
	if s.running == nil {
		s.running, s.finished = map[int]int{}, map[int]int{}
	}
	if s.running[n]++; s.running[n] > 1 {
		s.overlaps++
	}
	s.mu.Unlock()
	time.Sleep(time.Millisecond) // simulates the work of the task
	s.mu.Lock()
	s.running[n]--
	s.finished[n]++
	s.mu.Unlock()
	s.completed.Add(1)
	return nil
}

// TestWorkContinuesAfterRestartOfServer kills a server under load, twice. No
// confirmed enqueue is lost. Every task completes once and never runs twice at
// the same time. The workers continue without a restart.
func TestWorkContinuesAfterRestartOfServer(t *testing.T) {
	for name, end := range map[string]func(*pgserver.Server) error{"killed": (*pgserver.Server).Kill, "crashed": (*pgserver.Server).Crash} {
		t.Run(name, func(t *testing.T) {
			s := pgkit.Start(t, "fsync=off")
			at, dir := s.Address("postgres"), t.TempDir()
			var seen runs
			stops := make([]func(), 2)
			for i := range stops { // each worker has its own directory, as on two hosts
				r := open(t, at, runner.Options{Dir: filepath.Join(dir, fmt.Sprint(i))})
				r.Register(count.Handler(seen.handle))
				stops[i] = work(t, r, runner.WorkOptions{Concurrency: 5})
			}
			client := open(t, at, runner.Options{})
			joined(t, client, 2)
			var answered []int64
			next := 0
			enqueue := func(n int) {
				for range n {
					next++
					task, err := client.Enqueue(t.Context(), count.With(next, jobs.MaxAttempts(1), jobs.Unique(fmt.Sprint(next))))
					switch {
					case err == nil:
						answered = append(answered, task.ID)
					case !errors.Is(err, jobs.ErrBusy) && !errors.Is(err, jobs.ErrUnknown):
						t.Errorf("enqueue: got error %v, want jobs.ErrBusy or jobs.ErrUnknown", err)
					}
				}
			}
			for range 2 {
				enqueue(100)
				if err := end(s); err != nil {
					t.Fatal(err)
				}
				enqueue(2) // returns an error, because the server doesn't run
				if err := s.Run(t.Context()); err != nil {
					t.Fatal(err)
				}
				testkit.Within(t, patience, "the client is connected again",
					func() bool { n := len(answered); enqueue(1); return len(answered) > n })
				enqueue(50)
			}
			ranOnce(t, client, &seen, answered, stops)
		})
	}
}

// joined waits until n workers have registered on the server. A worker that
// can't reach the server at its start ends, so tests call joined before they
// stop the server.
func joined(t *testing.T, client *runner.Runner, n int) {
	t.Helper()
	testkit.Within(t, patience, "the workers have joined", func() bool {
		list, err := admin.Workers(t.Context(), client)
		return err == nil && len(list) == n
	})
}

// ranOnce waits for the end of all tasks and stops the workers. It checks that
// each confirmed task ran exactly once.
func ranOnce(t *testing.T, client *runner.Runner, seen *runs, answered []int64, stops []func()) {
	t.Helper()
	testkit.Within(t, patience, "every task has ended", func() bool {
		n, _, err := client.Count(t.Context(), jobs.Filter{States: []jobs.State{jobs.Pending, jobs.Running, jobs.Retrying}})
		return err == nil && n == 0
	})
	for _, stop := range stops {
		stop()
	}
	for _, id := range answered {
		task, err := client.Get(t.Context(), id)
		if err != nil || task.State != jobs.Completed {
			t.Errorf("task %d: got %s (%s %s), error %v; want completed", id, task.State, task.Reason, task.Error, err)
		}
	}

	testkit.Equal(t, "overlaps of attempts", seen.overlaps, 0)
	for n, times := range seen.finished {
		if times > 1 {
			t.Errorf("task %d: got %d runs, want one", n, times)
		}
	}
}

// TestCutConnectionsLoseAndDuplicateNoTask cuts connections again and again,
// sometimes in the middle of a commit. Every confirmed task exists once and
// ends once.
func TestCutConnectionsLoseAndDuplicateNoTask(t *testing.T) {
	at, through, p := proxied(t)
	sure := open(t, at, runner.Options{}) // this Runner doesn't use the proxy, so its connections aren't cut
	worker, client := open(t, through, runner.Options{}), open(t, through, runner.Options{})
	var seen runs
	worker.Register(count.Handler(seen.handle))
	stop := work(t, worker, runner.WorkOptions{Concurrency: 5})
	unknown := 0
	var answered []int64
	if _, err := sure.Enqueue(t.Context(), count.With(-1)); err != nil {
		t.Fatal(err)
	}

	// Wait for the worker before connections are cut, because Work returns an
	// error if it can't reach the server at its start.
	testkit.Within(t, patience, "the worker works", func() bool { return seen.completed.Load() == 1 })
	done := make(chan struct{})
	var cutter sync.WaitGroup
	cutter.Go(func() {
		for {
			select {
			case <-done:
				return
			case <-time.After(rand.N(30 * time.Millisecond)):
				p.cut()
			}
		}
	})
	for n := range 200 {
		for { // repeats the enqueue until it is confirmed; the unique key makes that safe
			task, err := client.Enqueue(t.Context(), count.With(n, jobs.MaxAttempts(1), jobs.Unique(fmt.Sprint(n))))
			if err == nil {
				answered = append(answered, task.ID)
				break
			}
			if errors.Is(err, jobs.ErrUnknown) {
				unknown++
			} else if !errors.Is(err, jobs.ErrBusy) {
				t.Fatalf("enqueue: got error %v, want jobs.ErrBusy", err)
			}
		}
	}

	close(done)
	cutter.Wait()
	testkit.Within(t, patience, "every task has ended", func() bool {
		n, _, err := sure.Count(t.Context(), jobs.Filter{States: []jobs.State{jobs.Pending, jobs.Running, jobs.Retrying}})
		return err == nil && n == 0
	})
	stop()
	for _, id := range answered {
		task, err := sure.Get(t.Context(), id)
		testkit.NoError(t, err)
		testkit.Equal(t, "state", task.State, jobs.Completed)
	}

	testkit.Equal(t, "overlaps of attempts", seen.overlaps, 0)
	t.Logf("the answers of %d commits were lost", unknown)
}

func TestTransactionOfCallerEnqueuesAndFinishes(t *testing.T) {
	at := pgkit.Address(t)
	r := open(t, at, runner.Options{})
	app, err := sql.Open("pgx", at)
	if err != nil {
		t.Fatal(err)
	}
	defer app.Close()
	if _, err := app.Exec(`CREATE SCHEMA IF NOT EXISTS app; CREATE TABLE IF NOT EXISTS app.orders (id BIGINT)`); err != nil {
		t.Fatal(err)
	}

	within := func(commit bool, do func(*sql.Tx) error) {
		t.Helper()
		tx, err := app.BeginTx(t.Context(), nil)
		if err == nil {
			if err = do(tx); err == nil && commit {
				err = tx.Commit()
			} else {
				err = errors.Join(err, tx.Rollback())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	add := func(tx *sql.Tx) error {
		_, err := r.EnqueueTx(t.Context(), tx, count.With(1))
		return err
	}
	within(false, add)
	n, _, err := r.Count(t.Context(), jobs.Filter{})
	testkit.Equal(t, "number of tasks after the rollback", n, 0)
	testkit.NoError(t, err)
	within(true, add)
	within(true, func(tx *sql.Tx) error { // this task has a lane: EnqueueTx reads more for it than for other tasks
		_, err := r.EnqueueTx(t.Context(), tx, count.With(2, jobs.Lane("l")))
		return err
	})
	r.Register(count.Handler(func(ctx context.Context, n int) error {
		tx, err := app.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback()
		if _, err := tx.ExecContext(ctx, `INSERT INTO app.orders VALUES ($1)`, n); err != nil {
			return err
		}
		if err := runner.FinishTx(ctx, tx, nil); err != nil {
			return err
		}
		return tx.Commit()
	}))
	defer work(t, r)()
	testkit.Within(t, patience, "both have completed", func() bool {
		n, _, err := r.Count(t.Context(), jobs.Filter{States: []jobs.State{jobs.Completed}})
		return err == nil && n == 2
	})
	var orders int
	testkit.NoError(t, app.QueryRow(`SELECT count(*) FROM app.orders`).Scan(&orders))
	testkit.Equal(t, "orders", orders, 2)
	elsewhere := open(t, pgkit.Address(t), runner.Options{})
	within(false, func(tx *sql.Tx) error { // EnqueueTx also works if the Runner uses another schema than the address of the handle
		_, err := elsewhere.EnqueueTx(t.Context(), tx, count.With(3))
		return err
	})
}

// TestWorkerFindsNewTasksAtOnce checks that a worker immediately finds a task
// that a program commits by plain SQL or that another process enqueues.
func TestWorkerFindsNewTasksAtOnce(t *testing.T) {
	at := pgkit.Address(t)
	r, client := open(t, at, runner.Options{}), open(t, at, runner.Options{})
	var seen runs
	r.Register(count.Handler(seen.handle))
	defer work(t, r)()
	for i := range 20 {
		began := time.Now()
		task, err := client.Enqueue(t.Context(), count.With(i))
		if err == nil {
			_, err = client.Await(t.Context(), task.ID)
		}
		if err != nil {
			t.Fatal(err)
		}
		t.Log(time.Since(began))
	}

	server, err := pgdriver.Engine().Connect(at, time.Second)
	if err != nil {
		t.Fatal(err)
	}

	raw := sql.OpenDB(server.Write)
	defer raw.Close()

	const look = 10 * time.Second // without notices, a worker would look for tasks at this interval
	least := look
	for i := range 3 {
		began := time.Now()
		var id int64
		err := raw.QueryRowContext(t.Context(), `INSERT INTO `+server.Schema+`.enqueue (job, args) VALUES ('count', $1) RETURNING id`,
			fmt.Sprint(100+i)).Scan(&id)
		if err == nil {
			_, err = client.Await(t.Context(), id)
		}
		testkit.NoError(t, err)
		least = min(least, time.Since(began))
	}

	if least > look/2 {
		t.Errorf("plain SQL: got the end after %v, want it within %v", least, look/2)
	}
}

func TestEnqueueReturnsTaskThatGetReturns(t *testing.T) {
	r := open(t, pgkit.Address(t), runner.Options{})
	job := jobs.Define[int]("job")
	for name, spec := range map[string]jobs.Spec{
		"plain":   job.With(1),
		"options": job.With(2, jobs.Label("l"), jobs.Timeout(time.Second), jobs.In(time.Minute+time.Microsecond)),
		"unique": job.With(3, jobs.UniqueWith("k", jobs.UniqueOptions{For: time.Hour, Replace: true,
			States: []jobs.State{jobs.Failed, jobs.Completed}})),
	} {
		task := runnerkit.Enqueue(t, r, spec)
		if got := runnerkit.Get(t, r, task.ID); !reflect.DeepEqual(task, got) {
			t.Errorf("%s: Enqueue returned\n%+v, and Get\n%+v", name, task, got)
		}
	}
}
