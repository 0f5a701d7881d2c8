package postgres_test

import (
	"context"
	"testing"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/runner/admin"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/pgkit"
)

// TestKilledServerKnowsItsWorkers checks that a killed server still knows a
// worker that registered just before the kill. Otherwise no worker could take
// over the later claims of that worker.
func TestKilledServerKnowsItsWorkers(t *testing.T) {
	s := pgkit.Start(t, "fsync=off", "wal_writer_delay=10s") // the log writer sleeps for 10 s, so only commits flush the write-ahead log
	r := open(t, s.Address("postgres"), runner.Options{})
	ran := make(chan jobs.Task, 1)
	r.Register(count.Handler(func(ctx context.Context, _ int) error {
		task, _ := runner.TaskFromContext(ctx)
		ran <- task
		return nil
	}))
	stop := work(t, r)
	defer stop()
	joined(t, r, 1)
	if err := s.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}

	testkit.Within(t, patience, "a task is enqueued", func() bool { _, err := r.Enqueue(t.Context(), count.With(1)); return err == nil })
	task := <-ran
	list, err := admin.Workers(t.Context(), r)
	testkit.NoError(t, err)
	testkit.Len(t, "workers", list, 1)
	testkit.Equal(t, "id of the worker", list[0].ID, task.WorkerID)
}
