package dbtest_test

import (
	"database/sql"
	"testing"
	"time"

	"example.com/runner/db"
	"example.com/runner/db/dbtest"
	"example.com/runner/jobs"
	"example.com/runner/jobs/command"
	"example.com/runner/test/testkit"
	"example.com/runner/test/testkit/pgkit"
)

// floorTest is a worker on a server. Another session holds an old snapshot, so
// the claims of the worker skip the entries of claimed tasks in the index: they
// read only the ids above so-called floors (see db/floor.go).
type floorTest struct {
	*testing.T
	d   *db.DB
	w   *db.Worker
	raw *sql.DB
	now time.Time
}

// newFloorTest starts a worker, and waits until its claims use floors.
func newFloorTest(t *testing.T) *floorTest {
	ctx := t.Context()
	d := dbtest.OpenServer(t, pgkit.Address(t))
	f := &floorTest{T: t, d: d, raw: dbtest.RawOf(t, d), now: moving}
	t.Cleanup(func() { f.raw.Close() })
	var err error
	f.w, err = d.Register(ctx, db.WorkerInfo{Name: "w", Lease: time.Hour, StartedAt: moving}, []db.ClaimJob{{Job: "command"}})
	testkit.NoError(t, err)
	f.cycle()
	other := dbtest.RawOf(t, d)
	t.Cleanup(func() { other.Close() })
	holder, err := other.BeginTx(ctx, &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
	testkit.NoError(t, err)
	t.Cleanup(func() { _ = holder.Rollback() })
	_, err = holder.ExecContext(ctx, "SELECT count(*) FROM pg_class")
	testkit.NoError(t, err)
	f.exec(`SET search_path = ` + d.Server().Schema + `; SET session_replication_role = replica;
		INSERT INTO tasks (generation_id, job, args, queue, state, priority, run_at, max_attempts, max_losses, created_at,
		updated_at) SELECT 1, 'command', '["true"]', 'default', 'pending', 5, 0, 1, 3, 0, 0 FROM generate_series(1, 60000);
		UPDATE tasks SET state = 'completed', generation_id = 3, finished_at = 0; SET session_replication_role = origin`)
	testkit.Eventually(t, "use of floors", func() bool { // the first look that takes long makes claims use floors
		f.insert(1)
		f.now = f.now.Add(time.Second)
		return !f.cycle().NextStart.IsZero()
	})
	f.now = f.now.Add(200 * time.Millisecond)
	return f
}

func (f *floorTest) exec(text string) {
	f.Helper()
	_, err := f.raw.ExecContext(f.Context(), text)
	testkit.NoError(f.T, err)
}

// insert adds n tasks and returns their ids.
func (f *floorTest) insert(n int, options ...jobs.Option) (ids []int64) {
	f.Helper()
	specs := make([]jobs.Spec, n)
	for i := range specs {
		specs[i] = jobs.Command(command.Command{Argv: []string{"true"}}, options...)
	}
	added, err := f.d.Insert(f.Context(), specs, f.now)
	testkit.NoError(f.T, err)
	for _, one := range added {
		ids = append(ids, one.ID)
	}
	return ids
}

// cycle claims up to ten tasks, as a worker without other tasks does.
func (f *floorTest) cycle(finish ...db.Finish) db.CycleResult {
	f.Helper()
	done, err := f.w.Cycle(f.Context(), db.Cycle{Now: f.now, Look: true, Finish: finish, Claim: db.Claim{Free: 10, Lease: time.Hour}})
	testkit.NoError(f.T, err)
	return done
}

func claimedIDs(done db.CycleResult) (ids []int64) {
	for _, task := range done.Claimed {
		ids = append(ids, task.ID)
	}
	return ids
}

func TestClaimWithFloorsTakesNewTasksInOrder(t *testing.T) {
	f := newFloorTest(t)
	low := f.insert(2, jobs.Priority(-3))
	usual := f.insert(2)
	high := f.insert(2, jobs.Priority(8))
	other := f.insert(1, jobs.Queue("other"))
	got := claimedIDs(f.cycle())
	testkit.Equal(t, "claimed tasks of the known queue", got, []int64{high[0], high[1], usual[0], usual[1], low[0], low[1]})
	f.now = f.now.Add(10 * time.Minute) // on a slow machine the next look is up to five minutes away
	got = claimedIDs(f.cycle())         // this cycle looks for new queues
	testkit.Equal(t, "claimed tasks of the new queue", got, other)
}

func TestClaimWithFloorsTakesRetriedTaskFirst(t *testing.T) {
	f := newFloorTest(t)
	ids := f.insert(2)
	done := f.cycle()
	testkit.Equal(t, "claimed tasks", claimedIDs(done), ids)
	for range 5 { // these cycles raise the floors
		f.now = f.now.Add(100 * time.Millisecond)
		f.insert(1)
		f.cycle()
	}
	f.exec(`SET search_path = ` + f.d.Server().Schema + `; UPDATE tasks SET state = 'completed', lease_expires_at = NULL,
		finished_at = 0, generation_id = generation_id + 1 WHERE state = 'running'`)
	_, err := f.d.Apply(f.Context(), ids[:1], db.Retry(f.now, f.now, false))
	testkit.NoError(t, err)
	later := f.insert(1)
	done = f.cycle()
	testkit.Equal(t, "claimed tasks", claimedIDs(done), []int64{ids[0], later[0]})
	testkit.Equal(t, "next claim is known", done.NextStart.IsZero(), false)
}

// TestFullLookFindsTaskBelowFloors makes an old task pending with generation 1.
// Its id is below the floors, so claims find the task only after the worker has
// looked at all pending tasks again.
func TestFullLookFindsTaskBelowFloors(t *testing.T) {
	f := newFloorTest(t)
	f.exec(`SET search_path = ` + f.d.Server().Schema + `; UPDATE tasks SET state = 'pending', generation_id = 1, attempt = 0,
		finished_at = NULL WHERE id = 5`)
	began := f.now
	for {
		done := f.cycle()
		if ids := claimedIDs(done); len(ids) > 0 {
			testkit.Equal(t, "claimed tasks", ids, []int64{5})
			break
		}
		if done.NextStart.IsZero() || f.now.Sub(began) > 10*time.Minute {
			t.Fatalf("got no claim of the task after %s and the next start %v, want a claim", f.now.Sub(began), done.NextStart)
		}
		f.now = done.NextStart
	}
}
