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

// Times are the sorted waits and durations of the last attempts of tasks.
type Times struct{ Waits, Runs []time.Duration }

// Rank returns the given percentile of sorted values: the value at the nearest rank. It returns 0 if there are no values.
func Rank(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[max((len(sorted)*percent+99)/100-1, 0)]
}

// sample is the wait and the duration of the last attempt of one task.
type sample struct {
	Step     int    `db:"step"`
	Wait     number `db:"wait"`
	Duration number `db:"duration"`
}

func (t *Times) add(s sample) {
	t.Waits, t.Runs = append(t.Waits, max(s.Wait.duration(), 0)), append(t.Runs, s.Duration.duration())
}

func (t *Times) sort() {
	slices.Sort(t.Waits)
	slices.Sort(t.Runs)
}

// selectThroughput returns the numbers of ended tasks by state, for each period of [2] seconds since second [1].
var selectThroughput = query(`SELECT state, (minute * 60 - ?1) / ?2 AS step, sum(n) AS n FROM {counters} WHERE minute * 60 >= ?1
	GROUP BY 1, 2
UNION ALL SELECT state, (hour * 3600 - ?1) / ?2, sum(n) FROM {counter_hours} WHERE hour * 3600 >= ?1 GROUP BY 1, 2`)

// selectSamples divides the time since [1] into [3] periods of [2] milliseconds. It lists the waits and durations of at most [4] tasks
// that ended in each period.
var selectSamples = query(`{samples}`)

// TimeBucket has statistics of the tasks that ended within a period.
type TimeBucket struct {
	Ended map[jobs.State]int
	Times // waits and durations of a sample of these tasks
}

// Trend divides the time since a given time into n periods of the same length, and returns statistics of the tasks that ended in each
// period. The waits and durations come from a sample of the tasks in each period, without deleted tasks. The parameter "some" is the
// greatest size of a sample.
func (d *DB) Trend(ctx context.Context, since time.Time, length time.Duration, n, some int) ([]TimeBucket, error) {
	steps := make([]TimeBucket, n)
	type ended struct {
		State jobs.State `db:"state"`
		Step  int        `db:"step"`
		N     int        `db:"n"`
	}
	counts, err := readRows[ended](ctx, d, selectThroughput, since.Unix(), int64(length/time.Second))
	if err != nil {
		return nil, err
	}
	for _, c := range counts {
		s := &steps[min(max(c.Step, 0), n-1)]
		if s.Ended == nil {
			s.Ended = map[jobs.State]int{}
		}
		s.Ended[c.State] += c.N
	}
	samples, err := readRows[sample](ctx, d, selectSamples, since.UnixMilli(), length.Milliseconds(), n, some)
	for _, s := range samples {
		steps[s.Step].add(s)
	}
	for i := range steps {
		steps[i].sort()
	}
	return steps, err
}
