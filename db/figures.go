package db

import (
	"context"
	"slices"
	"time"

	"example.com/runner/db/internal/sqltext"
	"example.com/runner/jobs"
)

// selectThroughput counts the ended tasks by {key}, which is the state or the
// queue, for each period of [2] seconds since second [1].
var selectThroughput = query(`SELECT {key} AS key, (minute * 60 - ?1) / ?2 AS period, sum(n) AS n FROM {counters}
	WHERE minute * 60 >= ?1 GROUP BY 1, 2
UNION ALL SELECT {key}, (hour * 3600 - ?1) / ?2, sum(n) FROM {counter_hours} WHERE hour * 3600 >= ?1 GROUP BY 1, 2`)

// selectTimes lists how long [2] of the last tasks that ended since [1] waited
// and ran in their last attempt. It looks at 20 times as many, because those
// that were cancelled before a start have no times. Index: tasks_finished, from
// its end.
var selectTimes = query(`SELECT started_at - run_at AS wait, finished_at - started_at AS duration
	FROM (SELECT run_at, started_at, finished_at FROM {tasks}
	WHERE finished_at >= ?1 ORDER BY finished_at DESC LIMIT 20 * ?2) AS latest WHERE started_at IS NOT NULL LIMIT 0 + ?2`)

// Throughput divides the time since a given time into n periods of the same
// length, and counts the tasks that ended in each, also those deleted since.
func (d *DB) Throughput(ctx context.Context, since time.Time, length time.Duration, n int) ([]map[jobs.State]int, error) {
	return throughput[jobs.State](ctx, d, "state", since, length, n)
}

// ThroughputByQueue counts the same tasks by queue, whatever their final
// states.
func (d *DB) ThroughputByQueue(ctx context.Context, since time.Time, length time.Duration, n int) ([]map[string]int, error) {
	return throughput[string](ctx, d, "queue", since, length, n)
}

func throughput[K ~string](ctx context.Context, d *DB, key string, since time.Time, length time.Duration, n int) ([]map[K]int, error) {
	counts, err := readRows[struct {
		Key    K   `db:"key"`
		Period int `db:"period"`
		N      int `db:"n"`
	}](ctx, d, selectThroughput.With(sqltext.Parts{"key": key}), since.Unix(), int64(length/time.Second))
	periods := make([]map[K]int, n)
	for i := range periods {
		periods[i] = map[K]int{}
	}

	for _, c := range counts {
		periods[min(max(c.Period, 0), n-1)][c.Key] += c.N
	}

	return periods, err
}

// Times returns how long the last tasks that ended since a given time, at most
// limit, waited and ran in their last attempts. Both lists are sorted.
func (d *DB) Times(ctx context.Context, since time.Time, limit int) (waits, runs []time.Duration, err error) {
	type row struct {
		Wait     number `db:"wait"`
		Duration number `db:"duration"`
	}
	rows, err := readRows[row](ctx, d, selectTimes, since.UnixMilli(), limit)
	for _, r := range rows {
		waits, runs = append(waits, max(r.Wait.duration(), 0)), append(runs, r.Duration.duration())
	}

	slices.Sort(waits)
	slices.Sort(runs)
	return waits, runs, err
}
