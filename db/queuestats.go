package db

import (
	"context"
	"time"
)

// QueueStats are statistics of the last hour of a queue. The times are those of the last attempt of each task that ended. The wait is the
// time from the due time to the start, and the run is the time from the start to the end. The percentiles are exact (nearest rank, in
// milliseconds) if at most 10,000 tasks of all queues ended within the hour. Otherwise they cover the last 10,000 tasks only.
type QueueStats struct {
	Tasks            int // number of tasks whose times the percentiles cover
	WaitP50, WaitP95 time.Duration
	RunP50, RunP95   time.Duration
	// Starts is the number of attempts that started. If more than 10,000 tasks ended, it is an estimate: the number of tasks that ended,
	// times the mean number of attempts of the last 10,000 tasks.
	Starts int
}

// statsOver is the length of the period that QueueStats covers.
const statsOver = time.Hour

// QueueStats returns the statistics of a queue.
func (d *DB) QueueStats(ctx context.Context, queue string, now time.Time) (QueueStats, error) {
	since := now.Add(-statsOver)
	recent, err := d.Recent(ctx, queue, since)
	if err != nil {
		return QueueStats{}, err
	}
	s := QueueStats{Tasks: len(recent.Runs), WaitP50: Rank(recent.Waits, 50), WaitP95: Rank(recent.Waits, 95),
		RunP50: Rank(recent.Runs, 50), RunP95: Rank(recent.Runs, 95), Starts: recent.Starts}
	if !recent.Whole && s.Tasks > 0 {
		history, err := d.History(ctx, since)
		if err != nil {
			return QueueStats{}, err
		}
		ended := 0
		for _, h := range history {
			if h.Queue == queue && h.Span == time.Minute {
				ended += h.N
			}
		}
		s.Starts = int(float64(recent.Starts) / float64(s.Tasks) * float64(max(ended, s.Tasks)))
	}
	return s, nil
}
