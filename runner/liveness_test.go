package runner

import (
	"context"
	"testing"
	"time"

	"example.com/runner/db/dbtest"
	"example.com/runner/jobs"
	"example.com/runner/test/testkit"
)

// livenessReports records the calls of WorkOptions.Liveness. It needs no lock,
// because the loop of Work makes these calls one after the other.
type livenessReports struct {
	began time.Time
	at    []time.Duration
	list  []livenessReport
}

type livenessReport struct {
	running  int
	draining bool
}

func (p *livenessReports) record(running int, draining bool) {
	if p.began.IsZero() {
		p.began = time.Now()
	}
	p.at, p.list = append(p.at, time.Since(p.began)), append(p.list, livenessReport{running, draining})
}

func TestLivenessIsReportedWhileIdleAndWhileBusy(t *testing.T) {
	var reports livenessReports
	nap := func(_ context.Context, _ *fakeTimeTest, in string) (string, error) {
		time.Sleep(10 * time.Minute)
		return in, nil
	}
	options := WorkOptions{Concurrency: 1, Lease: time.Hour, Grace: 5 * time.Minute,
		Liveness: reports.record, LivenessEvery: 10 * time.Second}
	onFakeTime(t, options, nap, func(f *fakeTimeTest) {
		id := f.enqueue(work.With("x", jobs.In(time.Minute)))
		f.work(8 * time.Minute) // the worker is idle for 1 minute and busy for 7 minutes, and then drains for 3 minutes
		f.want(id, jobs.Completed, "")
	})
	last := reports.list[len(reports.list)-1]
	n := len(reports.at)
	testkit.Between(t, "reports", n, 60, 70)
	testkit.Equal(t, "time of the first report", reports.at[0], 0)
	testkit.Equal(t, "draining in the last report", last.draining, true)
	testkit.Equal(t, "running tasks in the last report", last.running, 1)
	for i := range reports.at[1:] {
		if gap := reports.at[i+1] - reports.at[i]; gap > 10*time.Second+5*time.Millisecond {
			t.Errorf("got no report for %v, want one every 10s", gap)
		}
	}
}

// TestLivenessIsNotReportedWithoutDatabase checks that a worker does not report
// itself alive while it cannot read the database.
func TestLivenessIsNotReportedWithoutDatabase(t *testing.T) {
	var reports livenessReports
	nap := func(_ context.Context, _ *fakeTimeTest, in string) (string, error) {
		time.Sleep(10 * time.Minute)
		return in, nil
	}
	options := WorkOptions{Concurrency: 1, Lease: 24 * time.Hour, Liveness: reports.record, LivenessEvery: 10 * time.Second}
	onFakeTime(t, options, nap, func(f *fakeTimeTest) {
		f.enqueue(work.With("x"))
		raw := dbtest.Raw(t, f.store.Path())
		rename := func(from, to string) func() {
			return func() {
				if _, err := raw.Exec(`ALTER TABLE ` + from + ` RENAME TO ` + to); err != nil {
					t.Error(err)
				}
			}
		}
		f.after(2*time.Minute+time.Second, rename("tasks", "hidden"))
		f.after(4*time.Minute+time.Second, rename("hidden", "tasks"))
		f.work(11 * time.Minute)
		raw.Close()
	})
	before, after := 0, 0
	for _, at := range reports.at {
		switch {
		case at <= 2*time.Minute+2*time.Second:
			before++
		case at < 4*time.Minute:
			t.Errorf("got a report after %v, want none while the database cannot be read", at)
		default:
			after++
		}
	}
	if before < 12 || after < 30 {
		t.Errorf("got %d reports before and %d after the outage, want at least 12 and 30", before, after)
	}
}

func TestFirstLivenessReportFollowsFirstClaim(t *testing.T) {
	var reports livenessReports
	onFakeTime(t, WorkOptions{Liveness: reports.record}, nil, func(f *fakeTimeTest) {
		f.enqueue(work.With("x"))
		f.work(time.Minute)
	})
	if len(reports.list) == 0 {
		t.Fatal("got no report, want at least one")
	}
	testkit.Equal(t, "running tasks in the first report", reports.list[0].running, 1)
}
