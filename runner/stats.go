package runner

import (
	"context"
	"time"

	"example.com/runner/db"
)

// QueueStats are statistics of the last hour of a queue. The times are those of the last attempt of each task that ended. The wait is the
// time from the due time to the start, and the run is the time from the start to the end. The percentiles are exact (nearest rank, in
// milliseconds) if at most 10,000 tasks of all queues ended within the hour. Otherwise they cover the last 10,000 tasks only.
type QueueStats struct {
	Tasks            int // number of tasks with such times
	WaitP50, WaitP95 time.Duration
	RunP50, RunP95   time.Duration
	// Starts is the number of attempts that started. If more than 10,000 tasks ended, it is an estimate: the number of tasks that ended,
	// times the mean number of attempts of the last 10,000 tasks.
	Starts int
}

// statsOver is the length of the time that QueueStats covers.
const statsOver = time.Hour

// QueueStats returns the statistics of a queue.
func (r *Runner) QueueStats(ctx context.Context, queue string) (QueueStats, error) {
	since := now().Add(-statsOver)
	recent, err := r.store.Recent(ctx, queue, since)
	if err != nil {
		return QueueStats{}, err
	}
	f := QueueStats{Tasks: len(recent.Runs), WaitP50: db.Rank(recent.Waits, 50), WaitP95: db.Rank(recent.Waits, 95),
		RunP50: db.Rank(recent.Runs, 50), RunP95: db.Rank(recent.Runs, 95), Starts: recent.Starts}
	if !recent.Whole && f.Tasks > 0 {
		history, err := r.store.History(ctx, since)
		if err != nil {
			return QueueStats{}, err
		}
		ended := 0
		for _, h := range history {
			if h.Queue == queue && h.Span == time.Minute {
				ended += h.N
			}
		}
		f.Starts = int(float64(recent.Starts) / float64(f.Tasks) * float64(max(ended, f.Tasks)))
	}
	return f, nil
}
