package db

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// fillBehind adds [1] tasks of job [2] in queue [3], with state [4] and lane
// [5]. [6] is the value of the column tasks.waits, and [7] is the current time.
const fillBehind = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
INSERT INTO tasks (generation_id, job, queue, state, priority, run_at, max_attempts, max_losses, created_at, updated_at, lane, waits)
SELECT 1, ?2, ?3, ?4, 9, ?7, 10, 3, ?7, ?7, ?5, ?6 FROM n`

// waitingTasks describes a million tasks that cannot start.
type waitingTasks struct {
	name             string
	job, queue, lane string
	target           Target // target of the limit that blocks these tasks
	rate             bool   // whether the limit is a rate; otherwise it limits running tasks
}

// BenchmarkClaimBeside measures how much slower a claim is beside tasks that
// cannot start. A worker with two jobs claims tasks and releases them, while
// the table also has a million tasks of a higher priority that a limit or a
// lane blocks. The result x_empty is a ratio: the lower quartile of the times,
// divided by the lower quartile of the first case, which has no blocked tasks.
func BenchmarkClaimBeside(b *testing.B) {
	cases := []waitingTasks{
		{name: "nothing"},
		{name: "1M_behind_a_lane", job: "noop", queue: "default", lane: "l"},
		{name: "1M_behind_a_full_queue", job: "noop", queue: "full", target: Target{Kind: "queue", Name: "full"}},
		{name: "1M_behind_a_full_job", job: "other", queue: "default", target: Target{Kind: "job", Name: "other"}},
		{name: "1M_behind_a_rate", job: "noop", queue: "full", target: Target{Kind: "queue", Name: "full"}, rate: true},
	}
	for _, free := range []int{1, 10} {
		var small time.Duration
		for _, c := range cases {
			b.Run(fmt.Sprintf("%d/%s", free, c.name), func(b *testing.B) {
				d, err := Open(b.Context(), filepath.Join(b.TempDir(), "beside.db"), Options{Create: true, Normal: true})
				if err != nil {
					b.Fatal(err)
				}
				defer d.Close()
				worker, err := d.Register(b.Context(), WorkerInfo{Name: "bench", StartedAt: time.Now(), Lease: time.Minute, Slots: 10},
					[]ClaimJob{{Job: "noop", MaxAttempts: 10}, {Job: "other", MaxAttempts: 10}})
				if err != nil {
					b.Fatal(err)
				}
				c.add(b, d, worker)
				for range 50 {
					claimAndRelease(b, worker, free, false)
				}
				var times []time.Duration
				for b.Loop() {
					began := time.Now()
					claimAndRelease(b, worker, free, false)
					times = append(times, time.Since(began))
				}
				slices.Sort(times)
				one := times[len(times)/4] // the lower quartile, because other programs on the machine distort the longer times
				if small == 0 {
					small = one
				}
				b.ReportMetric(float64(one.Microseconds()), "µs_p25")
				b.ReportMetric(float64(one)/float64(small), "x_empty")
			})
		}
	}
}

// add first claims one task, which then holds the lane or uses up the limit.
// Then it adds the million tasks that have to wait, and a thousand tasks that
// can start.
func (c waitingTasks) add(b *testing.B, d *DB, worker *Worker) {
	b.Helper()
	at := time.Now()
	fill := func(rows int64, job, queue, state string, lane, waits any) {
		err := d.updateAlone(b.Context(), normal, func(t *tx) error {
			_, err := t.exec(command(fillBehind), rows, job, queue, state, lane, waits, at.UnixMilli())
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	switch {
	case c.lane != "":
		fill(1, c.job, c.queue, "pending", c.lane, nil)
	case c.job != "":
		fill(1, c.job, c.queue, "pending", nil, nil)
	}
	if c.target.Kind != "" {
		l := Limit{Target: c.target, Running: 1}
		if c.rate {
			l = Limit{Target: c.target, Rate: 1, Per: 24 * time.Hour, Burst: 1}
		}
		if err := d.SetLimit(b.Context(), l, at); err != nil {
			b.Fatal(err)
		}
	}
	if c.job != "" {
		result, err := worker.Cycle(b.Context(), Cycle{Now: time.Now(), Claim: Claim{Free: 10, Lease: time.Hour}})
		if err != nil || len(result.Claimed) != 1 {
			b.Fatalf("got %d claims and error %v, want 1 claim", len(result.Claimed), err)
		}
	}
	const million = 1_000_000
	if c.lane != "" {
		fill(million, c.job, c.queue, "blocked", c.lane, int64(0))
	} else if c.job != "" {
		fill(million, c.job, c.queue, "pending", nil, nil)
	}
	fill(1000, "noop", "default", "pending", nil, nil)
}
