package postgres_test

import (
	"errors"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/pgkit"
)

// TestWorkContinuesWithTimeoutsOfServer sets timeouts for the role of a worker
// and of a client, as an administrator may do. Another transaction holds the
// write lock for longer than these timeouts. Then the client gets ErrBusy,
// nothing is lost, and the worker continues.
func TestWorkContinuesWithTimeoutsOfServer(t *testing.T) {
	for _, setting := range []string{"statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "idle_session_timeout"} {
		t.Run(setting, func(t *testing.T) {
			t.Parallel()
			server, schema := pgkit.Shared(t), pgkit.NewSchema()
			root := connection(t, server.Address("postgres"), "CREATE ROLE "+schema+" SUPERUSER LOGIN")
			at := as(t, server.Address("postgres", "search_path="+schema), schema, "")
			open(t, at, runner.Options{})
			run(t, root, "ALTER ROLE "+schema+" SET "+setting+" = '100ms'")
			var seen runs
			worker := open(t, at, runner.Options{})
			worker.Register(count.Handler(seen.handle))
			stop := work(t, worker, runner.WorkOptions{Concurrency: 2})
			client := open(t, at, runner.Options{BusyTimeout: 300 * time.Millisecond})
			joined(t, client, 1)
			var answered []int64
			enqueue := func(n int) error {
				task, err := client.Enqueue(t.Context(), count.With(n, jobs.MaxAttempts(1)))
				if err == nil {
					answered = append(answered, task.ID)
				}
				return err
			}
			testkit.NoError(t, enqueue(1))
			direct := server.Address("postgres", "search_path="+schema)
			tx, err := handle(t, direct).BeginTx(t.Context(), nil)
			testkit.NoError(t, err)
			_, err = open(t, direct, runner.Options{}).EnqueueTx(t.Context(), tx, count.With(0))
			testkit.NoError(t, err)
			if err := enqueue(2); !errors.Is(err, jobs.ErrBusy) {
				t.Errorf("while the lock is held: got error %v, want jobs.ErrBusy", err)
			}
			testkit.NoError(t, tx.Rollback())
			for n := 3; n < 10; n++ {
				testkit.NoError(t, enqueue(n))
			}
			ranOnce(t, client, &seen, answered, []func(){stop})
		})
	}
}
