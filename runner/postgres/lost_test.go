package postgres_test

import (
	"context"
	"errors"
	"net/url"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/pgkit"
)

// TestOnlyAsynchronousStandbyLosesConfirmedTasks promotes a standby that hasn't
// received the last task. While the replication is synchronous, this task isn't
// confirmed. When the administrator turns synchronous replication off, the
// server confirms the task, and the promotion loses it. Then the worker ends
// the attempt of the lost task.
func TestOnlyAsynchronousStandbyLosesConfirmedTasks(t *testing.T) {
	first := pgkit.Start(t, "fsync=off")
	second, err := first.Standby(t.Context())
	testkit.NoError(t, err)
	t.Cleanup(func() { testkit.NoError(t, second.Close()) })
	admins := connection(t, first.Address("postgres"))
	waitFor := func(what, query string) {
		t.Helper()
		testkit.Within(t, patience, what, func() bool {
			var is bool
			err := admins.QueryRow(t.Context(), "SELECT EXISTS ("+query+")").Scan(&is)
			return err == nil && is
		})
	}
	at := "postgres://postgres@/postgres?" + url.Values{"host": {first.Dir + "," + second.Dir}, "port": {"5432,5432"},
		"target_session_attrs": {"read-write"}}.Encode()
	worker, client := open(t, at, runner.Options{}), open(t, at, runner.Options{})
	waitFor("the standby streams", "SELECT FROM pg_stat_replication WHERE state = 'streaming'")
	run(t, admins, "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
	waitFor("the standby is a synchronous one", "SELECT FROM pg_stat_replication WHERE sync_state = 'sync'")
	stopped := make(chan error, 1)
	started := make(chan bool, 1)
	worker.Register(count.Handler(func(ctx context.Context, n int) error {
		if n == 1 {
			return nil
		}
		started <- true
		<-ctx.Done()
		stopped <- context.Cause(ctx)
		return ctx.Err()
	}))
	defer work(t, worker, runner.WorkOptions{Lease: time.Second})()
	kept, err := client.Enqueue(t.Context(), count.With(1))
	testkit.NoError(t, err)
	_, err = client.Await(t.Context(), kept.ID)
	testkit.NoError(t, err)

	testkit.NoError(t, second.Kill())
	confirmed := make(chan jobs.Task, 1)
	go func() {
		task, err := client.Enqueue(t.Context(), count.With(2))
		if err != nil {
			t.Errorf("enqueue: got error %v, want it to wait for the standby", err)
		}
		confirmed <- task
	}()
	waitFor("the enqueue waits for a standby", "SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
	testkit.Equal(t, "confirmed tasks without a standby", len(confirmed), 0)

	run(t, admins, "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()")
	lost := <-confirmed
	<-started
	testkit.NoError(t, first.Kill())
	testkit.NoError(t, second.Run(t.Context()))
	testkit.NoError(t, second.Promote())
	testkit.Within(t, patience, "the client has found the other server", func() bool {
		_, err = client.Get(t.Context(), lost.ID)
		return err == nil || errors.Is(err, jobs.ErrNotFound)
	})
	testkit.ErrorIs(t, err, jobs.ErrNotFound)
	task, err := client.Get(t.Context(), kept.ID)
	testkit.NoError(t, err)
	testkit.Equal(t, "the task that the standby had", task.State, jobs.Completed)
	testkit.ErrorIs(t, <-stopped, jobs.ErrLost)
}
