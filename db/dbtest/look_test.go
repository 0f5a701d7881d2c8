package dbtest_test

import (
	"context"
	"hash/fnv"
	"strings"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/db/dbtest"
	"example.com/runner/db/pgdriver"
	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/pgkit"
)

// TestLookDoesNotWaitForOtherWorkersOnServer runs a cycle while another session
// holds the write lock in shared mode, as another worker does during its cycle.
// The cycle under test looks for due tasks and finds none, so it needs no
// exclusive lock. It must claim the pending task without waiting.
func TestLookDoesNotWaitForOtherWorkersOnServer(t *testing.T) {
	ctx := t.Context()
	d := dbtest.OpenServer(t, pgkit.Address(t))
	_, err := insert(t, d, 1)
	testkit.NoError(t, err)
	_, err = d.Insert(ctx, []jobs.Spec{{Job: "command", Args: []byte(`["true"]`), RunAt: moving.Add(time.Hour)}}, moving)
	testkit.NoError(t, err)
	w, err := d.Register(ctx, db.WorkerInfo{Name: "w", Lease: time.Minute, StartedAt: moving}, []db.ClaimJob{{Job: "command"}})
	testkit.NoError(t, err)
	raw := dbtest.RawOf(t, d)
	defer raw.Close()
	lock := fnv.New64a()
	_, _ = lock.Write([]byte("runner " + d.Server().Schema))
	held, err := raw.Conn(ctx)
	testkit.NoError(t, err)
	defer held.Close()
	_, err = held.ExecContext(ctx, `SELECT pg_advisory_lock_shared($1)`, int64(lock.Sum64()))
	testkit.NoError(t, err)

	done, err := w.Cycle(ctx, db.Cycle{Now: moving, Look: true, Claim: db.Claim{Free: 2, Lease: time.Minute}})
	testkit.NoError(t, err)
	testkit.Equal(t, "number of claims", len(done.Claimed), 1)
	testkit.Equal(t, "looked", done.Looked, true)
	testkit.Equal(t, "next due time", done.NextDue.UnixMilli(), moving.Add(time.Hour).UnixMilli())
}

// TestClaimThatFindsNothingSendsNoNotification claims while the queue has only
// a task of another job. It checks that idle workers do not notify each other.
// If they did, each new task would cause as many notifications as there are
// idle workers, and each notification would go to all of them.
func TestClaimThatFindsNothingSendsNoNotification(t *testing.T) {
	ctx, address := t.Context(), pgkit.Address(t)
	d := dbtest.OpenServer(t, address)
	_, err := d.Insert(ctx, []jobs.Spec{{Job: "other", Args: []byte(`{}`)}}, moving)
	testkit.NoError(t, err)
	w, err := d.Register(ctx, db.WorkerInfo{Name: "w", Lease: time.Minute, StartedAt: moving}, []db.ClaimJob{{Job: "command"}})
	testkit.NoError(t, err)
	server, err := pgdriver.Engine().Connect(address, time.Minute)
	testkit.NoError(t, err)
	messages, ended := make(chan string, 1000), make(chan error, 1)
	listening, stop := context.WithCancel(ctx)
	defer stop()
	channel := "runner_" + server.Schema
	go func() { ended <- server.Listen(listening, channel, func(message string) { messages <- message }) }()
	testkit.Equal(t, "first message", <-messages, "") // Listen calls its function with "" when it has begun to listen

	for _, look := range []bool{true, false, true, false} {
		done, err := w.Cycle(ctx, db.Cycle{Now: moving, Look: look, Claim: db.Claim{Free: 2, Lease: time.Minute}})
		testkit.NoError(t, err)
		testkit.Equal(t, "number of claims", len(done.Claimed), 0)
	}
	testkit.NoError(t, d.Close()) // when Close returns, all notifications of the claims have been sent
	raw := dbtest.RawOf(t, dbtest.OpenServer(t, address))
	defer raw.Close()
	_, err = raw.ExecContext(ctx, `SELECT pg_notify($1, 'last')`, channel)
	testkit.NoError(t, err)
	for message := range messages {
		if message == "last" {
			break
		}
		if strings.HasSuffix(message, " ends") {
			t.Errorf("got a notification of a claim, want none: %q", message)
		}
	}
	stop()
	<-ended
}
