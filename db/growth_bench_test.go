package db

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"example.com/runner/jobs"
	commands "example.com/runner/jobs/command"
)

// fillTasks adds [3] tasks of job [1] in state [2], with priority [4].
const fillTasks = `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?3)
INSERT INTO tasks (generation_id, queue, job, state, priority, run_at, max_attempts, max_losses, finished_at, created_at, updated_at)
SELECT 1, 'default', ?1, ?2, ?4, ?5, 10, 3, CASE WHEN ?2 = 'completed' THEN ?5 END, ?5, ?5 FROM n`

// claimAndRelease claims n tasks in one cycle and releases them in the next
// cycle.
func claimAndRelease(b *testing.B, w *Worker, n int, look bool) {
	b.Helper()
	result, err := w.Cycle(b.Context(), Cycle{Now: time.Now(), Look: look, Claim: Claim{Free: n, Lease: time.Hour}})
	if err != nil || len(result.Claimed) != n {
		b.Fatalf("got %d claims and error %v, want %d claims", len(result.Claimed), err, n)
	}
	finish := make([]Finish, n)
	for i, task := range result.Claimed {
		finish[i] = Finish{Task: task, Release: true}
	}
	if _, err := w.Cycle(b.Context(), Cycle{Now: time.Now(), Finish: finish}); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkClaim claims ten tasks in one cycle and releases them in the next
// cycle. The table also has a million other rows, which must not slow the claim
// down. The benchmark divides the time of each case by the time of the first
// case, which has a small table.
func BenchmarkClaim(b *testing.B) {
	const million = 1_000_000
	week := 7 * 24 * time.Hour
	cases := []struct {
		name     string
		job      string
		state    jobs.State
		rows     int
		priority int
		after    time.Duration
	}{
		{"1k_pending", "noop", jobs.Pending, 1000, 5, 0},
		{"1M_pending", "noop", jobs.Pending, million, 5, 0},
		{"1M_finished", "noop", jobs.Completed, million, 5, 0},
		{"1M_scheduled_higher_priority", "noop", jobs.Scheduled, million, 9, week},
		{"1M_pending_of_a_foreign_job", "foreign", jobs.Pending, million, 9, 0},
	}
	var small time.Duration
	for _, c := range cases {
		b.Run(c.name, func(b *testing.B) {
			d, err := Open(b.Context(), filepath.Join(b.TempDir(), "growth.db"), Options{Create: true, Normal: true})
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close()
			at := time.Now()
			fill := func(job string, state jobs.State, rows, priority int, at time.Time) {
				err := d.updateAlone(b.Context(), normal, func(t *tx) error {
					_, err := t.exec(command(fillTasks), job, string(state), int64(rows), int64(priority), at.UnixMilli())
					return err
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			fill(c.job, c.state, c.rows, c.priority, at.Add(c.after))
			if c.job != "noop" || c.state != jobs.Pending {
				fill("noop", jobs.Pending, 1000, 5, at)
			}
			w, err := d.Register(b.Context(), WorkerInfo{Name: "bench", StartedAt: at, Lease: time.Minute, Slots: 10},
				[]ClaimJob{{Job: "noop", MaxAttempts: 10}})
			if err != nil {
				b.Fatal(err)
			}
			for range 20 {
				claimAndRelease(b, w, 10, true)
			}
			began := time.Now()
			n := 0
			for b.Loop() {
				claimAndRelease(b, w, 10, true)
				n++
			}
			one := time.Since(began) / time.Duration(n)
			if small == 0 {
				small = one
			}
			b.ReportMetric(float64(one)/float64(small), "x_small")
		})
	}
}

// BenchmarkClaimJobs claims one task for a worker with 1, 5 and 30 registered
// jobs. A claim has one SELECT for each job.
func BenchmarkClaimJobs(b *testing.B) {
	for _, n := range []int{1, 5, 30} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d, err := Open(b.Context(), filepath.Join(b.TempDir(), "jobs.db"), Options{Create: true, Normal: true})
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close()
			names := []ClaimJob{{Job: "noop", MaxAttempts: 10}}
			for i := range n - 1 {
				names = append(names, ClaimJob{Job: fmt.Sprint("job", i), MaxAttempts: 1})
			}
			at := time.Now()
			err = d.updateAlone(b.Context(), normal, func(t *tx) error {
				_, err := t.exec(command(fillTasks), "noop", "pending", int64(1000), int64(5), at.UnixMilli())
				return err
			})
			if err != nil {
				b.Fatal(err)
			}
			w, err := d.Register(b.Context(), WorkerInfo{Name: "bench", StartedAt: at, Lease: time.Minute, Slots: 1}, names)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				claimAndRelease(b, w, 1, false)
			}
		})
	}
}

// BenchmarkTick measures the ticks of a schedule: first without other
// unfinished tasks of the schedule, then with 10,000 of them. These tasks must
// not slow a tick down.
func BenchmarkTick(b *testing.B) {
	for _, unfinished := range []int{0, 10_000} {
		b.Run(fmt.Sprint(unfinished), func(b *testing.B) {
			d, err := Open(b.Context(), filepath.Join(b.TempDir(), "tick.db"), Options{Create: true, Normal: true})
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close()
			at := time.Now()
			s := jobs.Schedule{Name: "reading", Cron: "@every 1s", Overlap: jobs.OverlapAllow, CatchUp: jobs.CatchUpOne, NextAt: at,
				CatchUpWindow: time.Hour, Spec: jobs.Command(commands.Shell("true"))}
			if err := d.ChangeSchedules(b.Context(), "", at, func([]jobs.Schedule) ([]jobs.Schedule, []string, error) {
				return []jobs.Schedule{s}, nil, nil
			}); err != nil {
				b.Fatal(err)
			}
			tick := func() {
				at = at.Add(time.Second)
				if _, err := d.Tick(b.Context(), at, true, func(jobs.Schedule) ([]time.Time, time.Time, error) {
					return []time.Time{at}, at.Add(time.Second), nil
				}, nil); err != nil {
					b.Fatal(err)
				}
			}
			for range unfinished {
				tick()
			}
			for b.Loop() {
				tick()
			}
		})
	}
}
