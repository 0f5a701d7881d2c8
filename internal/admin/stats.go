package admin

import (
	"cmp"
	"context"
	"slices"
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

// QueueStats are statistics of the last hour of a queue.
type QueueStats = db.QueueStats

// StatsOf returns the statistics of a queue.
func StatsOf(ctx context.Context, r *runner.Runner, queue string) (QueueStats, error) {
	return store(r).QueueStats(ctx, queue, time.Now())
}

// History returns how many tasks ended after the time since, by queue and state, oldest first. It has a point per minute for the last two
// days, and a point per hour for the last year. The counts include deleted tasks, because the database counts tasks when they end.
func History(ctx context.Context, r *runner.Runner, since time.Time) ([]HistoryPoint, error) {
	return store(r).History(ctx, since)
}

// Totals returns the numbers of attempts by queue, job and result. The numbers never decrease. Workers add to them with their heartbeats.
func Totals(ctx context.Context, r *runner.Runner) ([]Total, error) { return store(r).Totals(ctx) }

// PendingCount is the number of pending tasks of a queue and a job.
type PendingCount = db.PendingCount

// PendingAmong counts the pending tasks among the tasks with these ids.
func PendingAmong(ctx context.Context, r *runner.Runner, ids []int64) ([]PendingCount, error) {
	return store(r).PendingAmong(ctx, ids)
}

// QueuesWith returns the same as Runner.Queues, but it does not count the pending tasks: it uses the given counts. So its cost does not
// depend on the number of pending tasks.
func QueuesWith(ctx context.Context, r *runner.Runner, pending []PendingCount) ([]runner.Queue, error) {
	stats, err := store(r).QueuesWith(ctx, pending, time.Now().Add(-24*time.Hour))
	queues := make([]runner.Queue, 0, len(stats))
	for _, q := range stats {
		queues = append(queues, runner.Queue{Queue: q.Queue, Counts: q.Counts, Jobs: q.Jobs, Ended: q.Ended, Failed: q.Failed,
			Pause: runner.Pause(q.Pause), Oldest: q.Oldest})
	}
	slices.SortFunc(queues, func(a, b runner.Queue) int { return cmp.Compare(a.Queue, b.Queue) })
	return queues, err
}

// TimeBucket describes the tasks that ended within a period. Its durations come from a sample of the tasks. WaitP50 is the median time
// between the due time of a task and its start.
type TimeBucket struct {
	At               time.Time // start of the period
	Ended            map[jobs.State]int
	Sampled          int // number of sampled tasks; 0 if there are none
	WaitP50, WaitP95 time.Duration
	RunP50, RunP95   time.Duration

	waits, runs []time.Duration // durations of the sampled tasks, sorted
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
			WaitP95: db.Rank(s.Waits, 95), RunP50: db.Rank(s.Runs, 50), RunP95: db.Rank(s.Runs, 95),
			waits: s.Waits, runs: s.Runs}
	}
	return buckets, nil
}

// Whole returns one bucket for the whole period of the given buckets. Its percentiles use the samples of all buckets. Each sampled task has
// a weight: the number of ended tasks that it stands for.
func Whole(buckets []TimeBucket) TimeBucket {
	whole := TimeBucket{Ended: map[jobs.State]int{}}
	var waits, runs []weighted
	for i, b := range buckets {
		if i == 0 {
			whole.At = b.At
		}
		ended := 0
		for state, n := range b.Ended {
			whole.Ended[state] += n
			ended += n
		}
		whole.Sampled += b.Sampled
		for j := range b.runs { // a bucket has as many waits as runs
			weight := float64(max(ended, b.Sampled)) / float64(b.Sampled)
			waits, runs = append(waits, weighted{b.waits[j], weight}), append(runs, weighted{b.runs[j], weight})
		}
	}
	whole.WaitP50, whole.WaitP95 = weightedRanks(waits)
	whole.RunP50, whole.RunP95 = weightedRanks(runs)
	return whole
}

// weighted is a duration of a sample, and the number of tasks that it stands for.
type weighted struct {
	d      time.Duration
	weight float64
}

// weightedRanks returns the 50th and the 95th percentile of a sample by nearest rank. It sorts the sample.
func weightedRanks(list []weighted) (p50, p95 time.Duration) {
	slices.SortFunc(list, func(a, b weighted) int { return cmp.Compare(a.d, b.d) })
	all := 0.0
	for _, w := range list {
		all += w.weight
	}
	sum, has50 := 0.0, false
	for _, w := range list {
		sum += w.weight
		if !has50 && sum >= all*0.5 {
			p50, has50 = w.d, true
		}
		if p95 = w.d; sum >= all*0.95 {
			break
		}
	}
	return p50, p95
}
