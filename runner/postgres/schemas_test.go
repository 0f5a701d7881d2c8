package postgres_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/pgkit"
)

// TestTwoInstallationsInOneDatabaseDoNotSeeEachOther uses two schemas of one
// database.
func TestTwoInstallationsInOneDatabaseDoNotSeeEachOther(t *testing.T) {
	first, second := pgkit.Address(t), pgkit.Address(t)
	a, b := open(t, first, runner.Options{}), open(t, second, runner.Options{BusyTimeout: time.Minute})
	testkit.NoError(t, admin.PauseQueues(t.Context(), a, []string{admin.AllQueues}, admin.PauseOptions{}))
	testkit.NoError(t, admin.SetLimit(t.Context(), a, admin.Limit{Target: admin.Target{Kind: admin.AllTarget}, Running: 1}))
	testkit.NoError(t, a.SetSchedule(t.Context(), jobs.Schedule{Name: "nightly", Cron: "0 3 * * *", Spec: count.With(2)}))

	// This open transaction holds the write lock of the first schema. The
	// worker of the second schema must not wait for that lock.
	tx, err := handle(t, first).BeginTx(t.Context(), nil)
	testkit.NoError(t, err)
	defer func() { _ = tx.Rollback() }()
	_, err = a.EnqueueTx(t.Context(), tx, count.With(1, jobs.Unique("k")))
	testkit.NoError(t, err)
	var seen runs
	b.Register(count.Handler(seen.handle))
	defer work(t, b)()
	task, err := b.Enqueue(t.Context(), count.With(1, jobs.Unique("k")))
	testkit.NoError(t, err)
	testkit.Equal(t, "id", task.ID, 1)
	_, err = b.Await(t.Context(), task.ID)
	testkit.NoError(t, err)
	testkit.NoError(t, tx.Commit())

	tasks, err := a.List(t.Context(), jobs.Filter{})
	testkit.NoError(t, err)
	testkit.Equal(t, "the task of the first schema still waits", len(tasks) == 1 && tasks[0].State == jobs.Pending, true)
	workers, err := admin.Workers(t.Context(), a)
	testkit.NoError(t, err)
	testkit.Equal(t, "workers of the first schema", len(workers), 0)
	schedules, err := admin.Schedules(t.Context(), b)
	testkit.NoError(t, err)
	testkit.Equal(t, "schedules of the second schema", len(schedules), 0)
}

// TestCommitNotifiesOnlyItsSchema counts the notifications that a process
// receives from another process on each of two schemas.
func TestCommitNotifiesOnlyItsSchema(t *testing.T) {
	first, second := pgkit.Address(t), pgkit.Address(t)
	open(t, first, runner.Options{})
	b := open(t, second, runner.Options{})
	var notified atomic.Int64
	testkit.NoError(t, db.Of(b).Watch(t.Context(), 0, func(bool) { notified.Add(1) }))
	testkit.Within(t, patience, "the watch listens", func() bool { return notified.Load() == 1 })
	for _, at := range []string{first, first, second} {
		other := open(t, at, runner.Options{})
		_, err := other.Enqueue(t.Context(), count.With(1))
		testkit.NoError(t, err)
		testkit.NoError(t, other.Close()) // Close waits until the notification is sent
	}

	testkit.Within(t, patience, "the notification of the own schema", func() bool { return notified.Load() > 1 })
	testkit.Equal(t, "notifications", notified.Load(), 2)
}

// TestSchemaIsDumpedAndRestored deletes a schema and restores it with the tools
// of the server, beside another schema that stays as it is.
func TestSchemaIsDumpedAndRestored(t *testing.T) {
	server, name := pgkit.Shared(t), pgkit.NewSchema()
	at := server.Address("postgres", "search_path="+name)
	r := open(t, at, runner.Options{})
	done, err := r.Enqueue(t.Context(), count.With(1))
	testkit.NoError(t, err)
	testkit.NoError(t, r.Close())
	dump, err := server.Client("", "pg_dump", "--schema="+name)
	testkit.NoError(t, err)
	run(t, connection(t, at), "DROP SCHEMA "+name+" CASCADE")
	_, err = server.Client(dump, "psql", "--quiet", "--set=ON_ERROR_STOP=1")
	testkit.NoError(t, err)

	r = open(t, at, runner.Options{})
	var seen runs
	r.Register(count.Handler(seen.handle))
	defer work(t, r)()
	next, err := r.Enqueue(t.Context(), count.With(2))
	testkit.NoError(t, err)
	testkit.Equal(t, "the next id", next.ID, done.ID+1)
	for _, id := range []int64{done.ID, next.ID} {
		task, err := r.Await(t.Context(), id)
		testkit.NoError(t, err)
		testkit.Equal(t, "state", task.State, jobs.Completed)
	}
}

// TestOlderWorkerEndsWhenItReconnectsAfterUpgrade upgrades the tables while a
// worker has no connection, and so no heartbeat. The worker must not write to
// the tables of the newer program. Work returns an error, so that the process
// ends and the service manager starts the newer program.
func TestOlderWorkerEndsWhenItReconnectsAfterUpgrade(t *testing.T) {
	name := pgkit.NewSchema()
	at := pgkit.Shared(t).Address("postgres", "search_path="+name)
	r := open(t, pgkit.Shared(t).Address("postgres", "search_path="+name, "application_name=older_"+name),
		runner.Options{})
	started, stopped := make(chan bool), make(chan error, 1)
	r.Register(count.Handler(func(ctx context.Context, _ int) error {
		started <- true
		<-ctx.Done()
		stopped <- context.Cause(ctx)
		return ctx.Err()
	}))
	done := make(chan error, 1)
	go func() { done <- r.Work(t.Context(), runner.WorkOptions{Lease: time.Second}) }()
	_, err := r.Enqueue(t.Context(), count.With(1))
	testkit.NoError(t, err)
	<-started
	run(t, connection(t, at), "UPDATE "+name+".runner_schema SET version = 1000",
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'older_"+name+"'")
	testkit.ErrorIs(t, <-done, jobs.ErrSchema, "was written by a newer runner")
	t.Logf("the attempt was stopped: %v", <-stopped)
}
