package runner

import (
	"database/sql"
	"testing"
	"time"

	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

// raw executes SQL statements on a separate connection.
func (f *fakeTimeTest) raw(statements ...string) {
	raw, err := sql.Open("sqlite", "file:"+f.store.Path()+"?_pragma=busy_timeout(0)")
	if err != nil {
		f.Fatal(err)
	}
	defer raw.Close()
	for _, text := range statements {
		_, err := raw.Exec(text)
		// The worker may hold the write lock. The busy timeout of SQLite would
		// wait in real time, so this loop waits on the fake clock of the test.
		for range 1000 {
			if err == nil {
				break
			}
			time.Sleep(time.Millisecond)
			_, err = raw.Exec(text)
		}
		testkit.NoError(f.T, err)
	}
}

// TestClaimWithLostConfirmationIsReleased checks a claim that was committed but
// returned an error. The task is then running according to the database, but
// the worker does not run it. The worker must give the task back to its queue.
func TestClaimWithLostConfirmationIsReleased(t *testing.T) {
	onFakeTime(t, WorkOptions{Lease: time.Minute}, nil, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("x", jobs.In(time.Hour)))
		f.after(25*time.Second, func() { // every 10 s a worker searches for tasks that it owns but does not run
			f.raw(`UPDATE tasks SET state = 'running', generation_id = generation_id + 1, attempt = 1, lease_expires_at = 1 << 47,
				worker = (SELECT number FROM workers)`)
		})
		f.work(10 * time.Minute)
		got := f.want(id, jobs.Completed, "")
		f.mu.Lock()
		defer f.mu.Unlock()
		testkit.Len(f.T, "runs", f.runs, 1)
		testkit.Between(f.T, "start", f.runs[0].at, 25*time.Second, 50*time.Second)
		testkit.Equal(f.T, "attempt", got.Attempt, 1)
		testkit.Equal(f.T, "losses", got.Losses, 0)
	})
}

// TestAtMostOnceTaskStartsWhenItsClaimIsOnDisk checks a task that must never
// run twice. Claims of other tasks are not fsynced, so a power failure may undo
// them. This task starts only when its claim is on the disk. In this test each
// fsync fails until the worker has claimed the task and given it back ten
// times, with growing pauses.
func TestAtMostOnceTaskStartsWhenItsClaimIsOnDisk(t *testing.T) {
	onFakeTime(t, WorkOptions{Lease: time.Minute, ForeignTriggers: true}, nil, func(f *fakeTimeTest) {
		f.raw(`CREATE TRIGGER no_sync BEFORE UPDATE OF beat_at ON workers
			WHEN EXISTS (SELECT 1 FROM tasks WHERE state = 'running' AND max_losses = 0 AND generation_id < 20)
			BEGIN SELECT raise(ABORT, 'the disk of this test is full'); END`)
		id := f.enqueue(work.With("x", jobs.AtMostOnce()))
		f.work(10 * time.Minute)
		got := f.want(id, jobs.Completed, "")
		testkit.Equal(f.T, "losses", got.Losses, 0)
		testkit.Equal(f.T, "attempt", got.Attempt, 1)
		if len(f.runs) != 1 || f.runs[0].task.GenerationID < 20 {
			f.Errorf("got runs %+v, want one after ten claims", f.runs)
		} else if at := f.runs[0].at; at < 5*time.Second || at > time.Minute {
			f.Errorf("got a start after %v, want one after 5s to 1m", at)
		}
	})
}
