package admin

import (
	"context"
	"time"

	"example.com/runner/db"
	"example.com/runner/jobs"
	"example.com/runner/runner"
)

// HistoryPoint counts the tasks of one queue that ended in the same state within the same minute. For tasks that ended more than two days
// ago, the period is one hour.
type HistoryPoint = db.HistoryPoint

// Total counts the attempts of one job in one queue that have ended with the same result. It counts from the creation of the database.
type Total = db.Total

// History returns the numbers of tasks that ended after the time since, by queue and state, oldest first. It has a point per minute for the
// last two days, and a point per hour for the last year. The counts include deleted tasks, because the database counts tasks when they end.
func History(ctx context.Context, r *runner.Runner, since time.Time) ([]HistoryPoint, error) {
	return store(r).History(ctx, since)
}

// Totals returns the numbers of attempts by queue, job and result. The numbers never decrease. Workers add to them with their heartbeats.
func Totals(ctx context.Context, r *runner.Runner) ([]Total, error) { return store(r).Totals(ctx) }

// TimeBucket describes the tasks that ended within a period. Its durations come from a sample of the tasks. WaitP50 is the median time
// between the due time of a task and its start.
type TimeBucket struct {
	At               time.Time // start of the period
	Ended            map[jobs.State]int
	Sampled          int // number of sampled tasks; 0 if there are none
	WaitP50, WaitP95 time.Duration
	RunP50, RunP95   time.Duration
}

// sampled is the maximum number of tasks in the sample of a bucket.
const sampled = 30

// Trend returns the last n buckets. The last element is the current bucket. The length of a bucket must be a whole number of minutes. The
// counts include deleted tasks. The durations come from a sample of up to 30 tasks of each bucket that still exist. The cost of Trend does
// not depend on the number of tasks.
func Trend(ctx context.Context, r *runner.Runner, length time.Duration, n int) ([]TimeBucket, error) {
	since := time.Now().Truncate(length).Add(-time.Duration(n-1) * length)
	list, err := store(r).Trend(ctx, since, length, n, sampled)
	if err != nil {
		return nil, err
	}
	buckets := make([]TimeBucket, n)
	for i, s := range list {
		buckets[i] = TimeBucket{At: since.Add(time.Duration(i) * length), Ended: s.Ended, Sampled: len(s.Runs),
			WaitP50: db.Rank(s.Waits, 50),
			WaitP95: db.Rank(s.Waits, 95), RunP50: db.Rank(s.Runs, 50), RunP95: db.Rank(s.Runs, 95)}
	}
	return buckets, nil
}
