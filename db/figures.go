package db

import (
	"context"
	"slices"
	"time"

	"example.com/runner/jobs"
)

// selectHistory lists the numbers of ended tasks by queue and final state, per minute since minute [1] and per hour since hour [2].
var selectHistory = query(`SELECT queue, state, minute * 60 AS at, 60 AS span, sum(n) AS n FROM {counters} WHERE minute >= ?
	GROUP BY queue, state, minute
UNION ALL SELECT queue, state, hour * 3600, 3600, n FROM {counter_hours} WHERE hour >= ?`)

// HistoryPoint counts the tasks of one queue that ended in the same state within the same minute. A point that is more than two days old
// covers an hour instead.
type HistoryPoint struct {
	Queue string
	State jobs.State
	At    time.Time // start of the minute or hour
	Span  time.Duration
	N     int
}

// History returns how many tasks ended since a time, by queue and state, oldest first. It also counts tasks that were deleted later.
func (d *DB) History(ctx context.Context, since time.Time) ([]HistoryPoint, error) {
	type row struct {
		Queue string     `db:"queue"`
		State jobs.State `db:"state"`
		At    int64      `db:"at"`
		Span  int64      `db:"span"`
		N     int        `db:"n"`
	}
	list, err := readAs(ctx, d, func(r *row) HistoryPoint {
		return HistoryPoint{r.Queue, r.State, time.Unix(r.At, 0).UTC(), time.Duration(r.Span) * time.Second, r.N}
	}, selectHistory, since.Unix()/60, since.Unix()/3600)
	slices.SortStableFunc(list, func(a, b HistoryPoint) int { return a.At.Compare(b.At) })
	return list, err
}

// selectThroughput returns the numbers of ended tasks by state, for each period of [2] seconds since second [1].
var selectThroughput = query(`SELECT state, (minute * 60 - ?1) / ?2 AS step, sum(n) AS n FROM {counters} WHERE minute * 60 >= ?1
	GROUP BY 1, 2
UNION ALL SELECT state, (hour * 3600 - ?1) / ?2, sum(n) FROM {counter_hours} WHERE hour * 3600 >= ?1 GROUP BY 1, 2`)

// selectTimes lists how long [2] of the last tasks that ended since [1] waited and ran in their last attempt. It looks at 20 times as many,
// because those that were cancelled before a start have no times. Index: tasks_finished, from its end.
var selectTimes = query(`SELECT started_at - run_at AS wait, finished_at - started_at AS duration
	FROM (SELECT run_at, started_at, finished_at FROM {tasks}
	WHERE finished_at >= ?1 ORDER BY finished_at DESC LIMIT 20 * ?2) AS latest WHERE started_at IS NOT NULL LIMIT 0 + ?2`)

// Throughput divides the time since a given time into n periods of the same length, and counts the tasks that ended in each period, also
// those that were deleted later.
func (d *DB) Throughput(ctx context.Context, since time.Time, length time.Duration, n int) ([]map[jobs.State]int, error) {
	type ended struct {
		State jobs.State `db:"state"`
		Step  int        `db:"step"`
		N     int        `db:"n"`
	}
	counts, err := readRows[ended](ctx, d, selectThroughput, since.Unix(), int64(length/time.Second))
	steps := make([]map[jobs.State]int, n)
	for i := range steps {
		steps[i] = map[jobs.State]int{}
	}
	for _, c := range counts {
		steps[min(max(c.Step, 0), n-1)][c.State] += c.N
	}
	return steps, err
}

// Times returns how long the last tasks that ended since a given time waited and ran in their last attempts. Both lists are sorted. The
// parameter "most" is the greatest number of tasks.
func (d *DB) Times(ctx context.Context, since time.Time, most int) (waits, runs []time.Duration, err error) {
	type row struct {
		Wait     number `db:"wait"`
		Duration number `db:"duration"`
	}
	rows, err := readRows[row](ctx, d, selectTimes, since.UnixMilli(), most)
	for _, r := range rows {
		waits, runs = append(waits, max(r.Wait.duration(), 0)), append(runs, r.Duration.duration())
	}
	slices.Sort(waits)
	slices.Sort(runs)
	return waits, runs, err
}
