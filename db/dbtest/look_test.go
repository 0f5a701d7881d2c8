package dbtest_test

import (
	"hash/fnv"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/db/dbtest"
	"example.com/runner/internal/testkit"
	"example.com/runner/internal/testkit/pgkit"
	"example.com/runner/jobs"
)

// TestALookDoesNotWaitForOtherWorkersOnAServer holds the write lock in the shared mode in which cycles of other workers hold it. A cycle
// that looks for due tasks and finds none must claim without waiting for that lock.
func TestALookDoesNotWaitForOtherWorkersOnAServer(t *testing.T) {
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
