package web

import (
	"context"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// trend describes the tasks that ended in a time range.
type trend struct {
	Steps            []trendStep // periods of the same length, the current one last
	Ended            map[jobs.State]int
	Sampled          int // number of tasks from which the percentiles were computed
	WaitP50, WaitP95 time.Duration
	RunP50, RunP95   time.Duration
}

// trendStep is one period of a trend.
type trendStep struct {
	At    time.Time // start of the period
	Ended map[jobs.State]int
}

// sampled limits how many tasks a trend has percentiles from.
const sampled = 1000

// readTrend divides the time until now into periods and describes the last n of
// them. Their length must be a whole number of minutes. The numbers of ended
// tasks include tasks that were deleted since. The percentiles are those of the
// last 1000 tasks that still exist. A wait is the time from the due time of a
// task to its start.
func readTrend(ctx context.Context, r *runner.Runner, length time.Duration, n int) (trend, error) {
	since := time.Now().Truncate(length).Add(-time.Duration(n-1) * length)
	steps, err := db.Of(r).Throughput(ctx, since, length, n)
	if err != nil {
		return trend{}, err
	}

	t := trend{Ended: map[jobs.State]int{}}
	for i, ended := range steps {
		t.Steps = append(t.Steps, trendStep{since.Add(time.Duration(i) * length), ended})
		for state, n := range ended {
			t.Ended[state] += n
		}
	}

	waits, runs, err := db.Of(r).Times(ctx, since, sampled)
	t.Sampled = len(runs)
	t.WaitP50, t.WaitP95 = rank(waits, 50), rank(waits, 95)
	t.RunP50, t.RunP95 = rank(runs, 50), rank(runs, 95)
	return t, err
}

// rank returns a percentile of sorted values: the value at the nearest rank, or
// 0 if there are none.
func rank(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max((len(sorted)*percent+99)/100-1, 0)]
}
