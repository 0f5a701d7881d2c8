package runner

import (
	"database/sql"
	"testing"
	"time"

	"example.com/runner/jobs"
)

// raw executes statements on a connection of its own.
func (b *bubble) raw(statements ...string) {
	raw, err := sql.Open("sqlite", "file:"+b.Path()+"?_pragma=busy_timeout(0)")
	if err != nil {
		b.Fatal(err)
	}
	defer raw.Close()
	for _, text := range statements {
		_, err := raw.Exec(text)
		for range 1000 { // Work may hold the lock, and SQLite would wait in real time
			if err == nil {
				break
			}
			time.Sleep(time.Millisecond)
			_, err = raw.Exec(text)
		}
		if err != nil {
			b.Errorf("%s: %v", text, err)
		}
	}
}

// TestAClaimWhoseAnswerWasLostIsGivenBack checks a claim whose answer was lost after its commit. The worker then does not run a task that
// it runs according to the database.
func TestAClaimWhoseAnswerWasLostIsGivenBack(t *testing.T) {
	fake(t, Options{Lease: time.Minute}, nil, func(b *bubble) {
		id := b.enqueue(work.With("x", jobs.In(time.Hour)))
		b.within(25*time.Second, func() { // after the first check by the worker
			b.raw(`UPDATE tasks SET state = 'running', generation_id = generation_id + 1, attempt = 1, lease_expires_at = 1 << 47,
				worker = (SELECT number FROM workers)`)
		})
		b.work(10 * time.Minute)
		got := b.want(id, jobs.Completed, "")
		b.mu.Lock()
		defer b.mu.Unlock()
		if len(b.runs) != 1 || b.runs[0].at < 25*time.Second || b.runs[0].at > 50*time.Second || got.Attempt != 1 || got.Losses != 0 {
			b.Errorf("ran %+v: %+v", b.runs, got)
		}
	})
}

// TestAnAtMostOnceTaskStartsWhenItsClaimIsOnTheDisk checks a task that must never run twice. A claim is not fsynced, so a power failure
// may undo it. Such a task therefore starts only when its claim is on the disk. In this test the fsync fails until the worker has claimed
// and returned the task ten times, with growing pauses.
func TestAnAtMostOnceTaskStartsWhenItsClaimIsOnTheDisk(t *testing.T) {
	fake(t, Options{Lease: time.Minute, ForeignTriggers: true}, nil, func(b *bubble) {
		b.raw(`CREATE TRIGGER no_sync BEFORE UPDATE OF beat_at ON workers
			WHEN EXISTS (SELECT 1 FROM tasks WHERE state = 'running' AND max_losses = 0 AND generation_id < 20)
			BEGIN SELECT raise(ABORT, 'the disk of this test is full'); END`)
		id := b.enqueue(work.With("x", jobs.AtMostOnce()))
		b.work(10 * time.Minute)
		if got := b.want(id, jobs.Completed, ""); got.Losses != 0 || got.Attempt != 1 {
			b.Errorf("got %+v; want Losses = 0, Attempt = 1", got)
		}
		if len(b.runs) != 1 || b.runs[0].task.GenerationID < 20 {
			b.Errorf("started %+v", b.runs)
		} else if at := b.runs[0].at; at < 5*time.Second || at > time.Minute {
			b.Errorf("claimed and given back ten times in %v", at)
		}
	})
}
