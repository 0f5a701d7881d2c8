package postgres_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"example.com/runner/jobs"
	"example.com/runner/runner"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/pgkit"
)

// TestWorkersDoNotKeepEachOtherBusy checks that busy workers don't notify each
// other, and that idle workers send no notices. Otherwise each search for tasks
// by one worker would cause a search by the other worker.
func TestWorkersDoNotKeepEachOtherBusy(t *testing.T) {
	at := pgkit.Address(t)
	client := open(t, at, runner.Options{})
	for range 2 {
		r := open(t, at, runner.Options{})
		r.Register(count.Handler(func(context.Context, int) error { return nil }))
		defer work(t, r, runner.WorkOptions{Concurrency: 10})()
	}

	joined(t, client, 2)
	conn := listener(t, at)
	specs := make([]jobs.Spec, 3000)
	for i := range specs {
		specs[i] = count.With(i)
	}
	if _, err := client.EnqueueSeq(t.Context(), slices.Values(specs)); err != nil {
		t.Fatal(err)
	}

	testkit.Within(t, patience, "all is done", func() bool {
		n, _, err := client.Count(t.Context(), jobs.Filter{States: []jobs.State{jobs.Completed}})
		return err == nil && n == len(specs)
	})
	news, ends := 0, 0
	for news < 1000 { // idle workers that wake each other up would send hundreds of notices per second
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		notice, err := conn.WaitForNotification(ctx)
		cancel()
		if err != nil {
			break
		}
		if strings.HasSuffix(notice.Payload, " ends") {
			ends++
		} else {
			news++
		}
	}

	if news >= 1000 || news > ends {
		t.Errorf("got %d notices for workers and %d of ends, want at most one for workers per end and fewer than 1000", news, ends)
	}
}

// listener returns a connection that receives the notices of a database.
func listener(t *testing.T, address string) *pgx.Conn {
	t.Helper()
	config, err := pgx.ParseConfig(address)
	if err != nil {
		t.Fatal(err)
	}

	conn, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}

	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(t.Context(), "LISTEN runner_"+config.RuntimeParams["search_path"]); err != nil {
		t.Fatal(err)
	}

	return conn
}

// TestNoticeIsSentAgainAfterItsConnectionWasCut cuts the connection that sends
// a notice. The client then sends the notice through another connection. The
// enqueue is confirmed by then, but without the notice the worker would find
// the task minutes later.
func TestNoticeIsSentAgainAfterItsConnectionWasCut(t *testing.T) {
	at, through, p := proxied(t)
	worker := open(t, at, runner.Options{})
	var seen runs
	worker.Register(count.Handler(seen.handle))
	defer work(t, worker, runner.WorkOptions{Lease: time.Hour})() // without notices, the worker looks for tasks every ten minutes
	joined(t, worker, 1)
	p.at = "pg_notify"
	client := open(t, through, runner.Options{})
	if _, err := client.Enqueue(t.Context(), count.With(1)); err != nil {
		t.Fatal(err)
	}

	testkit.Within(t, patience, "it runs", func() bool { return seen.completed.Load() == 1 })
	// Wait until the proxy has cut the connection that sends the notice. The
	// run of the task doesn't show this: a worker also looks for tasks when it
	// starts, so the task may run before the cut.
	testkit.Within(t, patience, "the notice is cut", func() bool {
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.at == ""
	})
}

// TestReadIsRepeatedAfterItsConnectionWasCut cuts the connection of a read. The
// client then repeats the read on another connection.
func TestReadIsRepeatedAfterItsConnectionWasCut(t *testing.T) {
	at, through, p := proxied(t)
	open(t, at, runner.Options{}) // creates the tables
	r := open(t, through, runner.Options{})
	p.at = "count("
	n, _, err := r.Count(t.Context(), jobs.Filter{})
	testkit.Equal(t, "number of unfinished tasks", n, 0)
	testkit.NoError(t, err)
	if p.mu.Lock(); p.at != "" {
		t.Error("got no cut connection, want the connection of the read cut")
	}
	p.mu.Unlock()
}
