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

// HistoryPoint counts the tasks of one queue that reached the same final state within the same minute. A point that is older than two days
// counts the tasks of a whole hour.
type HistoryPoint = db.HistoryPoint

// Total counts the ended attempts of one job in one queue that had the same result, since the database was created.
type Total = db.Total

// TimeBucket describes the tasks that ended within a period. The durations come from a sample of these tasks. A wait is the time from the
// due time of a task to its start.
type TimeBucket struct {
	At               time.Time // start of the period
	Ended            map[jobs.State]int
	Sampled          int // number of tasks in the sample
	WaitP50, WaitP95 time.Duration
	RunP50, RunP95   time.Duration

	waits, runs []time.Duration // durations of the sampled tasks, sorted
}

// sampled is the maximum number of sampled tasks in a bucket.
const sampled = 30

// Trend divides the time until now into buckets and returns the last n of them, the current one last. The length of a bucket must be a
// whole number of minutes. The numbers of ended tasks include tasks that were deleted since. The durations come from up to 30 tasks of each
// bucket, which must still exist. The cost of Trend does not depend on the number of tasks.
func Trend(ctx context.Context, r *runner.Runner, length time.Duration, n int) ([]TimeBucket, error) {
	since := time.Now().Truncate(length).Add(-time.Duration(n-1) * length)
	list, err := Store(r).Trend(ctx, since, length, n, sampled)
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

// Whole combines the given buckets into one bucket for the whole period. Its percentiles use the samples of all buckets. A sampled task has
// more weight if it stands for more ended tasks.
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
		for j := range b.runs { // each sampled task has an element in b.waits and one in b.runs
			weight := float64(max(ended, b.Sampled)) / float64(b.Sampled)
			waits, runs = append(waits, weighted{b.waits[j], weight}), append(runs, weighted{b.runs[j], weight})
		}
	}
	whole.WaitP50, whole.WaitP95 = weightedRanks(waits)
	whole.RunP50, whole.RunP95 = weightedRanks(runs)
	return whole
}

// weighted is the duration of a sampled task. The weight is the number of ended tasks that the sampled task stands for.
type weighted struct {
	d      time.Duration
	weight float64
}

// weightedRanks returns the median and the 95th percentile of a sample, by nearest rank. It sorts the sample.
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
